"""Building the nodes that a replacement pattern describes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tiered.graph.edits.literals import as_operands
from tiered.rewriter.pattern import Const, OpPattern, Opt, Pattern, PatternError, VariablePattern
from tiered.rewriter.skip import Skip
from tiered.support.errors import OperatorError

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
        PatternError: a node, an attribute or the dtype of an output is not determined.
    """
    for output in outputs:
        if isinstance(output, Const) and not output.dtype:
            raise PatternError(
                f"nothing determines the dtype of {output}; write const(np.array(...))"
            )
    for part in (part for output in outputs for part in output.walk()):
        if isinstance(part, VariablePattern | Opt):
            if part.name not in known:
                raise PatternError(f"the replacement reads {part}, which is no input of it")
        elif isinstance(part, OpPattern):
            is_open = part.any_attributes or any(
                value is ... or callable(value) for _, value in part.attributes
            )
            if is_open:
                raise PatternError(f"{part} leaves attributes open: what should be built?")
            for value in (
                value for _, value in part.attributes if isinstance(value, VariablePattern)
            ):
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
        Unbuildable: a number does not fit the dtype that operands beside it have, or none has one.
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
            if isinstance(part, OpPattern):
                key = id(part.identity)
                self.widths[key] = max(self.widths.get(key, 1), part.output + 1)

    def value(self, pattern: Pattern) -> Any:
        if isinstance(pattern, VariablePattern | Opt):
            return self.known[pattern.name]
        if isinstance(pattern, Const):
            assert pattern.dtype
            return self.graph.constant(np.asarray(pattern.expected, pattern.dtype))
        assert isinstance(pattern, OpPattern)
        same = pattern.identity
        if id(same) not in self.built:
            self.built[id(same)] = self.node(same)
        return self.built[id(same)][pattern.output]

    def node(self, pattern: OpPattern) -> tuple[Value, ...]:
        given = [
            operand.expected
            if isinstance(operand, Const) and not operand.dtype
            else self.value(operand)
            for operand in pattern.operands
        ]
        given = [np.array(each) if isinstance(each, tuple) else each for each in given]
        try:
            operands = as_operands(self.graph, pattern.op_type, pattern.domain, given)
        except OperatorError as error:
            raise Unbuildable(Skip("{}", error)) from error
        attributes = {
            name: self.known[value.name] if isinstance(value, VariablePattern) else value
            for name, value in pattern.attributes
        }
        operator: Any = self.graph.op(pattern.domain).named(pattern.op_type)
        count = self.widths[id(pattern)]
        made = operator(*operands, outputs=count, **attributes)
        return (made,) if count == 1 else made
