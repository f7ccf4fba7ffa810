"""Building the nodes that a replacement pattern describes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from tiered.graph.core.schema import schema_of
from tiered.rewriter.pattern import Const, Op, Opt, Pattern, PatternError, Var
from tiered.rewriter.skip import Skip

if TYPE_CHECKING:
    from tiered.graph.core.graph import Graph
    from tiered.graph.core.value import Value


class Unbuildable(Exception):
    """A replacement cannot be built here; the rewrite declines with the reason."""

    def __init__(self, reason: Skip) -> None:
        super().__init__(str(reason))
        self.reason = reason


def check_buildable(outputs: Sequence[Pattern], known: Collection[str]) -> None:
    """Check that patterns determine the nodes to build.

    Raises:
        PatternError: a node or an attribute is not determined.
    """
    for part in (part for output in outputs for part in output.walk()):
        if isinstance(part, Var | Opt):
            if part.name not in known:
                raise PatternError(f"the replacement reads {part}, which is no input of it")
        elif isinstance(part, Op):
            is_open = part.any_attributes or any(
                value is ... or callable(value) for _, value in part.attributes
            )
            if is_open:
                raise PatternError(f"{part} leaves attributes open: what should be built?")
            for value in (value for _, value in part.attributes if isinstance(value, Var)):
                if value.name not in known:
                    raise PatternError(f"{part} reads {value}, which the pattern does not bind")
        elif not isinstance(part, Const) or part.expected is None:
            raise PatternError(f"{part} describes many things: what should be built?")


def build(graph: Graph, outputs: Sequence[Pattern], known: Mapping[str, Any]) -> tuple[Value, ...]:
    """Build the nodes that patterns describe, and return their values.

    Args:
        graph: the graph that gets the nodes.
        outputs: the patterns; an object that occurs twice is built once.
        known: the values of the variables.

    Raises:
        Unbuildable: a number has operands of unknown dtype beside it.
    """
    builder = _Builder(graph, outputs, known)
    return tuple(builder.value(output) for output in outputs)


class _Builder:
    def __init__(self, graph: Graph, outputs: Sequence[Pattern], known: Mapping[str, Any]) -> None:
        self.graph = graph
        self.known = known
        self.built: dict[int, tuple[Value, ...]] = {}
        self.widths: dict[int, int] = {}
        for part in (part for output in outputs for part in output.walk()):
            if isinstance(part, Op):
                key = id(part.identity)
                self.widths[key] = max(self.widths.get(key, 1), part.output + 1)

    def value(self, pattern: Pattern) -> Any:
        if isinstance(pattern, Var | Opt):
            return self.known[pattern.name]
        if isinstance(pattern, Const):
            assert pattern.dtype
            return self.graph.constant(np.asarray(pattern.expected, pattern.dtype))
        assert isinstance(pattern, Op)
        same = pattern.identity
        if id(same) not in self.built:
            self.built[id(same)] = self.node(same)
        return self.built[id(same)][pattern.output]

    def node(self, pattern: Op) -> tuple[Value, ...]:
        operands = [
            None if isinstance(operand, Const) and not operand.dtype else self.value(operand)
            for operand in pattern.operands
        ]
        for index, operand in enumerate(pattern.operands):
            if isinstance(operand, Const) and not operand.dtype:
                dtype = self.dtype_beside(pattern, index, operands)
                operands[index] = self.graph.constant(np.asarray(operand.expected, dtype))
        attributes = {
            name: self.known[value.name] if isinstance(value, Var) else value
            for name, value in pattern.attributes
        }
        operator: Any = self.graph.op(pattern.domain).named(pattern.op_type)
        count = self.widths[id(pattern)]
        made = operator(*operands, outputs=count, **attributes)
        return (made,) if count == 1 else made

    def dtype_beside(self, pattern: Op, index: int, operands: Sequence[Value | None]) -> Any:
        """Return the dtype that a number must have, which other operands have."""
        schema = schema_of(pattern.op_type, pattern.domain)
        formals = [] if schema is None else list(schema.inputs)
        kinds = [formals[min(at, len(formals) - 1)].type_str for at in range(len(operands))]
        if formals and kinds[index].startswith("tensor("):
            return onnx.helper.tensor_dtype_to_np_dtype(
                onnx.TensorProto.DataType.Value(kinds[index][len("tensor(") : -1].upper())
            )
        for operand, kind in zip(operands, kinds, strict=True):
            if operand is not None and kind == kinds[index] and operand.dtype is not None:
                return onnx.helper.tensor_dtype_to_np_dtype(operand.dtype)
        raise Unbuildable(Skip("the dtype beside {} is not known", pattern.operands[index]))
