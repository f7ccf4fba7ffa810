"""Patterns from functions, from `onnx.parser` text and from ONNX graphs.

lambda x, y: op.Add(x, y)
"(x, y) => (z) { z = Add(x, y) }"
"(float[N] x) => (float[N] y) <float s> { y = Mul(x, s) }"
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import onnx
from onnx import parser

from tiered.graph.api import Model
from tiered.graph.core.graph import Graph
from tiered.graph.core.schema import decode_attribute
from tiered.graph.core.tensor import Tensor
from tiered.graph.core.types import TensorType, read_type
from tiered.graph.io.export import export_model
from tiered.rewriter.language import const, op as newest, pattern_of
from tiered.rewriter.pattern import Const, Opt, Pattern, PatternError, Together, VariablePattern
from tiered.support.amounts import counted
from tiered.support.errors import UsageError, words_of

Protos: TypeAlias = "onnx.ModelProto | onnx.GraphProto | onnx.FunctionProto"
PatternLike: TypeAlias = "Pattern | Callable[..., Any] | str | Protos | Graph | Model"


@dataclass(frozen=True)
class Template:
    """A parsed function or string: the names of the inputs, and a pattern for each output."""

    inputs: tuple[str, ...]
    outputs: tuple[Pattern, ...]

    @property
    def pattern(self) -> Pattern:
        """The pattern of all outputs."""
        return self.outputs[0] if len(self.outputs) == 1 else Together(self.outputs)


def template_of(source: PatternLike, *, exact: bool = True) -> Template:
    """Parse a function, a string or a pattern.

    Args:
        source: a function of patterns, the text of a graph, an ONNX graph or model, or a pattern
            itself. The inputs of a graph or model match any value, whatever types they declare.
        exact: whether initializers of a string match their own numbers only, not any constant.

    Raises:
        UsageError: it is none of these, or the text does not parse.
    """
    if isinstance(source, Pattern):
        names = [part.name for part in source.walk() if isinstance(part, VariablePattern | Opt)]
        outputs = source.roots if isinstance(source, Together) else (source,)
        return Template(tuple(dict.fromkeys(names)), outputs)
    if isinstance(source, str):
        return _Text(exact).template(source)
    graph = _proto_of(source)
    if graph is not None:
        return _Text(exact).template_of(graph, f"graph {graph.name!r}")
    if not callable(source):
        raise UsageError(
            f"a pattern is a function, a string, an ONNX graph or a pattern, not {source!r}"
        )
    names = list(inspect.signature(source).parameters)
    result = source(*(VariablePattern(name) for name in names))
    several = result if isinstance(result, tuple | list) else (result,)
    return Template(tuple(names), tuple(map(pattern_of, several)))


class _Text:
    """Parses one string; `known` maps the names in it to patterns."""

    def __init__(self, exact: bool) -> None:
        self.exact = exact
        self.known: dict[str, Any] = {"": None}

    def template(self, text: str) -> Template:
        """Return the template of a string; the types of its inputs are conditions."""
        graph = _parsed(text)
        self.known.update((info.name, _typed(info)) for info in graph.input)
        return self.template_of(graph, repr(text))

    def template_of(self, graph: onnx.GraphProto | onnx.FunctionProto, label: str) -> Template:
        """Return the template of a graph; `label` is its name in messages."""
        if isinstance(graph, onnx.FunctionProto):
            inputs, outputs = list(graph.input), list(graph.output)
        else:
            stored = {tensor.name for tensor in graph.initializer}
            inputs = [info.name for info in graph.input if info.name not in stored]
            outputs = [info.name for info in graph.output]
            for tensor in graph.initializer:
                self.known[tensor.name] = _constant(Tensor(tensor), exact=self.exact)
        for name in inputs:
            self.known.setdefault(name, VariablePattern(name))
        for node in graph.node:
            self._read(node)
        for name in outputs:
            if name not in self.known:
                raise UsageError(f"no node computes {name!r} in {label}")
        return Template(tuple(inputs), tuple(self.known[name] for name in outputs))

    def _read(self, node: onnx.NodeProto) -> None:
        settings = {attribute.name: decode_attribute(attribute) for attribute in node.attribute}
        if node.op_type == "Constant" and not node.domain:
            ((name, value),) = settings.items()
            is_tensor = isinstance(value, Tensor)
            self.known[node.output[0]] = _constant(value, exact=True) if is_tensor else const(value)
            return
        unknown = [name for name in node.input if name not in self.known]
        if unknown:
            raise UsageError(f"{node.op_type} reads {', '.join(unknown)}, which no node computes")
        operands = [... if name == "" else self.known[name] for name in node.input]
        # By its name as an attribute, which may be any word.
        made = getattr(newest(node.domain), node.op_type)(*operands, **settings)
        for index, name in enumerate(node.output):
            if name:
                self.known[name] = made.out(index)


def _parsed(text: str) -> onnx.GraphProto:
    try:
        return parser.parse_graph(f"g {text}")
    except parser.ParseError as error:
        raise UsageError(f"the pattern does not parse: {words_of(error)}") from error


def _proto_of(source: object) -> onnx.GraphProto | onnx.FunctionProto | None:
    """Return the graph of a proto, of a model or of a graph of one; None for anything else."""
    if isinstance(source, onnx.GraphProto | onnx.FunctionProto):
        return source
    if isinstance(source, onnx.ModelProto):
        return source.graph
    if isinstance(source, Model):
        source = source.main
    if not isinstance(source, Graph):
        return None
    if source.is_main:
        return export_model(source.model).graph
    raise UsageError(f"a pattern is a main graph or a model, not {source!r}")


def _typed(info: onnx.ValueInfoProto) -> Pattern:
    kind = read_type(info.type)
    if not isinstance(kind, TensorType):
        return VariablePattern(info.name)
    shape = None
    if info.type.tensor_type.HasField("shape"):
        shape = tuple(dim if isinstance(dim, int) else None for dim in kind.shape or ())
    return VariablePattern(info.name).having(dtype=kind.dtype, shape=shape)


def _constant(tensor: Tensor, *, exact: bool) -> Const:
    if not exact:
        return const()
    array = tensor.numpy()
    return const(array.item() if array.ndim == 0 and array.dtype.kind in "biuf" else array)


def check_agreement(pattern: Template, replacement: Template) -> None:
    """Check that a replacement has the inputs and outputs of a pattern.

    Raises:
        PatternError: the numbers of inputs or outputs differ.
    """
    for what, one, other in (
        ("input", pattern.inputs, replacement.inputs),
        ("output", pattern.outputs, replacement.outputs),
    ):
        if len(one) != len(other):
            raise PatternError(
                f"the pattern has {counted(len(one), what)} ({_listed(one)}), the replacement "
                f"{len(other)} ({_listed(other)})"
            )


def _listed(parts: Iterable[object]) -> str:
    return ", ".join(map(str, parts))
