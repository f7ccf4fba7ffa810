"""The pipeline on graphs: many in one model, and alone where one did not become cheapest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import onnx

from tiered.extensions.discovery.expressions import (
    BORDER,
    OPSET,
    Attributes,
    ExpressionTable,
    GrammarExpr,
    node_of,
    outputs_of,
)
from tiered.graph import Graph, Node, Value
from tiered.graph.core.types import tensor_type, write_type
from tiered.pipeline.optimize import optimize_model
from tiered.support.errors import TieredError

TOGETHER: Final = 128
"""How many graphs are in one model."""


@dataclass(frozen=True)
class Judged:
    """What the pipeline made of a graph.

    Attributes:
        member: the graph.
        form: what became of it; None if the pipeline failed.
        error: why it failed.
    """

    member: GrammarExpr
    form: GrammarExpr | None
    error: str = ""


def model_of(members: Sequence[GrammarExpr], *, name: str = "discovery") -> onnx.ModelProto:
    """Return graphs as one model: each with borders and constants of its own."""
    graph = onnx.GraphProto(name=name)
    for at, member in enumerate(members):
        _add(graph, member, f"_{at}")
    made = onnx.ModelProto(ir_version=10, graph=graph)
    made.opset_import.add(domain="", version=OPSET)
    if any(each.domain for member in members for each in member.walk()):
        made.opset_import.add(domain="com.microsoft", version=1)
    return made


def _add(graph: onnx.GraphProto, member: GrammarExpr, suffix: str) -> None:
    names: dict[int, str] = {}
    nodes: dict[tuple[object, ...], list[GrammarExpr]] = {}
    for each in member.walk():
        names[each.number] = f"{_stem(each)}{suffix}"
        if each.array is not None:
            held = onnx.numpy_helper.from_array(each.array, names[each.number])
            graph.initializer.append(held)
        elif each.op == BORDER:
            kind = write_type(tensor_type(each.dtype, each.shape))
            graph.input.add(name=names[each.number], type=kind)
        else:
            nodes.setdefault(each.node_key, []).append(each)
    for results in nodes.values():
        present = {each.output: names[each.number] for each in results}
        count = max(outputs_of(results[0]), 1 + max(present))
        outputs = [present.get(at, f"other{at}_{results[0].number}{suffix}") for at in range(count)]
        node = graph.node.add()
        node.CopyFrom(node_of(results[0], names, outputs))
        node.name = f"node_{results[0].number}{suffix}"
    # A graph of no operator needs one, as its output has a name of its own.
    name = names[member.number]
    if not member.is_operator:
        graph.node.add(op_type="Identity", input=[name], output=[f"out{suffix}"])
        name = f"out{suffix}"
    graph.output.add(name=name, type=write_type(tensor_type(member.dtype, member.shape)))


def _stem(expr: GrammarExpr) -> str:
    return str(expr.attributes[0][1]) if expr.op == BORDER else f"v{expr.number}"


class PipelineJudge:
    """Runs the pipeline of one level, and reads the results as expressions.

    Args:
        table: where expressions are kept.
        level: the level of the pipeline.
    """

    def __init__(self, table: ExpressionTable, level: int) -> None:
        self._table = table
        self._level = level

    def judged(self, members: Sequence[GrammarExpr]) -> list[Judged]:
        """Return what becomes of graphs, many in one model."""
        found: list[Judged] = []
        for start in range(0, len(members), TOGETHER):
            part = members[start : start + TOGETHER]
            try:
                found += self._run(part)
            except TieredError:
                for member in part:
                    found.append(self.alone(member))
        return found

    def alone(self, member: GrammarExpr) -> Judged:
        """Return what becomes of one graph in a model of its own."""
        try:
            return self._run([member])[0]
        except TieredError as error:
            return Judged(member, None, str(error).splitlines()[0])

    def _run(self, members: Sequence[GrammarExpr]) -> list[Judged]:
        model = optimize_model(model_of(members), opt_level=self._level).model
        reader = GraphReader(self._table, model.main)
        return [
            Judged(member, reader.read(output))
            for member, output in zip(members, model.main.outputs, strict=True)
        ]


class GraphReader:
    """Values of a graph as expressions.

    Args:
        table: where expressions are kept.
        graph: it has static shapes.
        borders: the values that are read as borders, with their expressions.
    """

    def __init__(
        self, table: ExpressionTable, graph: Graph, borders: dict[Value, GrammarExpr] | None = None
    ) -> None:
        self._table = table
        self._graph = graph
        self._known: dict[Value, GrammarExpr | None] = dict(borders or {})

    def read(self, value: Value) -> GrammarExpr | None:
        """Return a value as an expression; None if a type in it is not known."""
        pending = [value]
        while pending:
            each = pending[-1]
            if each in self._known:
                pending.pop()
                continue
            producer = each.producer
            waiting = [
                x for x in (() if producer is None else producer.inputs)
                if x is not None and x not in self._known
            ]  # fmt: skip
            if waiting:
                pending += waiting
                continue
            self._known[each] = self._made(each, producer)
            pending.pop()
        return self._known[value]

    def _made(self, value: Value, producer: Node | None) -> GrammarExpr | None:
        array = value.const
        if array is not None:
            return self._table.constant(array)
        shape, dtype = value.static_shape, value.dtype
        if shape is None or dtype is None:
            return None
        if producer is None:
            name = value.name.rpartition("_")[0] or value.name
            return self._table.border(name, int(dtype), shape)
        operands = [None if x is None else self._known[x] for x in producer.inputs]
        if any(x is not None and self._known[x] is None for x in producer.inputs):
            return None
        if producer.bodies or producer.has_references:
            return None
        if producer.op_type == "Identity" and not producer.domain:
            return operands[0]
        return self._table.apply(
            producer.op_type, operands, settings_of(producer),
            kind=(int(dtype), shape),
            output=list(producer.outputs).index(value),
            domain=producer.domain,
        )  # fmt: skip


def settings_of(node: Node) -> Attributes:
    """Return the attributes of a node that are no defaults."""
    return tuple(node.settings.items())
