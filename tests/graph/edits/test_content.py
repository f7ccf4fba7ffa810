"""A view that is closed is free at once, without the collector."""

import gc
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.small import content
from tiered import (
    Graph,
    Model,
    ModelError,
    Node,
    Pass,
    PassContext,
    Value,
    get_pass,
    module_pass,
    optimize,
    proto_pass,
)
from tiered.graph.edits.content import exchange_content
from tiered.testing import parse

MODEL = (
    "(float[2,4] x, bool k) => (float[2,4] y) <float[4] a = {1,2,3,4}, float[4] b = {1,2,3,4}> {"
    "s = Identity(x) t = Add(s, a) u = Add(t, b) y = If(k) <"
    "then_branch = g () => (float[2,4] p) { i = Identity(u) p = Relu(i) },"
    "else_branch = e () => (float[2,4] q) { q = Neg(u) }> }"
)


@proto_pass(opt_level=0)
def renumbered(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return the same model with another number."""
    proto.model_version += 1
    return proto


Piece = Model | Graph | Node | Value


@pytest.fixture
def kept() -> Iterator[list[Piece]]:
    """The parts of views that existed before the test, which runs without the collector."""
    gc.collect()
    gc.disable()
    yield _pieces()
    gc.enable()


def _pieces() -> list[Piece]:
    return [piece for piece in gc.get_objects() if isinstance(piece, Piece)]


def test_optimize_leaves_nothing_to_the_collector(kept: list[Piece], tmp_path: Path) -> None:
    optimize(parse(MODEL), opt_level=3)
    onnx.save(parse(MODEL), tmp_path / "a.onnx")
    optimize(tmp_path / "a.onnx", tmp_path / "b.onnx", opt_level=3)
    assert len(_pieces()) == len(kept)


@pytest.mark.parametrize("pass_", [renumbered, "remove_unused_functions"])
def test_exchanged_and_removed_content_is_freed_too(kept: list[Piece], pass_: Pass | str) -> None:
    text = (
        f'<ir_version: 10, opset_import: ["": 21, "local": 1]> g {MODEL}'
        '<domain: "local", opset_import: ["": 21]> f (s, a) => (t) { t = Add(s, a) }'
    )
    optimize(parse(text), passes=[pass_])
    assert len(_pieces()) == len(kept)


def test_an_instrument_may_keep_the_model() -> None:
    seen: list[Model] = []
    with PassContext(trace=lambda model, info, is_before: seen.append(model)):
        optimize(parse(MODEL), opt_level=3)
    assert len(seen[0].main) == 2
    seen[0].check_view(types=True)


def test_a_context_is_freed_with_its_last_reference(kept: list[Piece]) -> None:
    with PassContext(opt_level=3) as context:
        get_pass("eliminate_identity")(parse(MODEL))
    assert context.chain == (context,)
    held = weakref.ref(context)
    del context
    assert held() is None


def test_a_closed_model_is_empty_and_its_nodes_were_removed() -> None:
    model = Model.from_proto(parse(MODEL))
    get_pass("eliminate_identity").apply(model)
    main, nodes = model.main, [node for graph in model.graphs() for node in graph.nodes]
    model.close()
    assert not len(main)
    assert [node.is_live for node in nodes] == [False] * len(nodes)
    assert [value.name for value in nodes[0].inputs if value is not None] == ["x", "a"]
    assert nodes[0].output.name == "t"
    assert not model.journal
    assert str(model) == "<Model the model, closed>"
    model.close()


USES: list[Callable[[Model, Graph], object]] = [
    lambda model, main: model.to_proto(),
    lambda model, main: model.save("no_such_folder/m.onnx"),
    lambda model, main: model.set_opset("", 22),
    lambda model, main: get_pass("eliminate_identity").apply(model),
    lambda model, main: main.constant(np.array(1)),
]


@pytest.mark.parametrize("use", USES)
def test_using_a_closed_model_is_an_error(use: Callable[[Model, Graph], object]) -> None:
    model = Model.from_proto(parse(MODEL))
    main = model.main
    model.close()
    with pytest.raises(ModelError, match=r"was closed and is empty.* keep a `\.copy\(\)`"):
        use(model, main)


def test_a_pass_that_keeps_its_model_must_copy_it() -> None:
    seen: list[Model] = []

    @module_pass(opt_level=0)
    def keep(model: Model, ctx: PassContext) -> None:
        """Keep it."""
        seen.extend((model, model.copy()))

    optimize(parse(MODEL), passes=[keep])
    with pytest.raises(ModelError, match="the model was closed"):
        seen[0].to_proto()
    assert len(seen[1].main) == 4


def test_exchanged_content_is_a_new_view_with_the_same_history() -> None:
    model = Model.from_proto(parse(MODEL))
    fresh = Model.from_proto(parse(MODEL.replace("Identity(x)", "Abs(x)")))
    main, old, before = model.main, model.main.nodes[0], content(model)
    wanted, held = content(fresh), fresh.main
    exchange_content(model, fresh)
    assert model.main is held
    assert content(model) == wanted
    assert not old.is_live
    new = model.main.nodes[0]
    assert (new.op_type, new.is_live, new.sources) == ("Abs", True, (old,))
    assert all(graph.model is model for graph in model.graphs())
    assert len(model.journal) == 1
    model.check_view()
    model.undo_to(0)
    assert model.main is main
    assert (old.is_live, new.is_live) == (True, False)
    assert content(model) == before
    model.check_view()
