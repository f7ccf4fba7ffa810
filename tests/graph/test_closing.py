"""A view that is closed is free at once, without the collector."""

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest

from tiered import Model, Node, PassContext, Value, get_pass, optimize
from tiered.testing import parse

MODEL = (
    "(float[2,4] x, bool k) => (float[2,4] y) <float[4] a = {1,2,3,4}, float[4] b = {1,2,3,4}> {"
    "s = Identity(x) t = Add(s, a) u = Add(t, b) y = If(k) <"
    "then_branch = g () => (float[2,4] p) { i = Identity(u) p = Relu(i) },"
    "else_branch = e () => (float[2,4] q) { q = Neg(u) }> }"
)


@pytest.fixture
def kept() -> Iterator[list[Node | Value]]:
    """What of views there was before, while the collector is off."""
    gc.collect()
    gc.disable()
    yield _pieces()
    gc.enable()


def _pieces() -> list[Node | Value]:
    return [piece for piece in gc.get_objects() if isinstance(piece, Node | Value)]


def test_optimize_leaves_nothing_to_the_collector(
    kept: list[Node | Value], tmp_path: Path
) -> None:
    optimize(parse(MODEL), opt_level=3)
    onnx.save(parse(MODEL), tmp_path / "a.onnx")
    optimize(tmp_path / "a.onnx", tmp_path / "b.onnx", opt_level=3)
    assert len(_pieces()) == len(kept)


def test_who_watches_may_keep_the_model() -> None:
    seen: list[Model] = []
    with PassContext(trace=lambda model, info, is_before: seen.append(model)):
        optimize(parse(MODEL), opt_level=3)
    assert len(seen[0].main) == 3
    seen[0].check_view(types=True)


def test_a_context_goes_with_the_last_who_has_it(kept: list[Node | Value]) -> None:
    with PassContext(opt_level=3) as context:
        get_pass("eliminate_identity")(parse(MODEL))
    assert context.chain == (context,)
    held = weakref.ref(context)
    del context
    assert held() is None


def test_a_closed_model_is_empty_and_its_nodes_were_removed() -> None:
    model = Model.from_proto(parse(MODEL))
    get_pass("eliminate_identity").apply(model)
    nodes = [node for graph in model.graphs() for node in graph.nodes]
    model.close()
    assert not len(model.main)
    assert [node.is_live for node in nodes] == [False] * len(nodes)
    assert [value.name for value in nodes[0].inputs if value is not None] == ["x", "a"]
    assert nodes[0].output.name == "t"
    assert not model.journal
