"""What edits make of models, with the names of all nodes and values, as text."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.recorded import assert_recorded
from tests.small import content, made_by, named, parsed
from tiered import Graph, Model, TieredError
from tiered.graph import Tensor
from tiered.graph.edits import unroll


def test_what_edits_make_of_models() -> None:
    assert_recorded(Path(__file__).with_name("edited_models.txt"), {"=": _edited})


def _edited(_: str, below: list[str]) -> Iterator[str]:
    text, *edits = (line for line in below if line and not line.startswith("  "))
    yield text
    for edit in edits:
        yield edit
        model = parsed(text)
        before, mark = content(model), model.mark()
        names: dict[str, Any] = {
            "m": model, "g": model.main, "v": lambda name, model=model: named(model, name),
            "n": lambda name, model=model: made_by(model, name), "np": np, "Tensor": Tensor,
            "unroll": unroll.unroll, "unroll_scan": unroll.unroll_scan,
        }  # fmt: skip
        try:
            exec(edit, names)
            yield from [*_written(model)]
            model.check_view()
        except TieredError as error:
            yield f"  {type(error).__name__}: {error}"
        model.undo_to(mark)
        assert content(model) == before, edit
    yield ""


def _written(model: Model) -> Iterator[str]:
    for graph in model.graphs():
        inputs, outputs = (
            ", ".join(value.name for value in values) for values in (graph.inputs, graph.outputs)
        )
        weights = ", ".join(
            f"{value.name} {value.const.tolist()}" if value.const is not None else value.name
            for value in graph.initializers
        )
        yield f"  {graph.name} ({inputs}) => ({outputs}) <{weights}>"
        yield from _nodes(graph)


def _nodes(graph: Graph) -> Iterator[str]:
    for node in graph.topological_order():
        reads, writes = (
            ", ".join("-" if value is None else value.name for value in values)
            for values in (node.inputs, node.outputs)
        )
        yield f"    [{node.name}] {writes} = {node.operator}({reads}) {node.attributes or ''}".rstrip()
