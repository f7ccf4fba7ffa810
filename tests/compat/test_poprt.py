"""PopRT's names: a pass of a ModelProto, registered, fetched, run in a manager."""

from collections.abc import Iterator

import onnx
import pytest

import tiered
from tests.small import content, fuse_relu, model, ops, proto
from tiered.compat import poprt
from tiered.errors import PassError, UsageError
from tiered.passes.registry import registry


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    yield
    registry.unregister("drop_names")
    poprt._CLASSES.clear()


def drop_names() -> type[poprt.Pass]:
    @poprt.register("drop_names")
    class DropNames(poprt.Pass):
        def __init__(self, to: str = "gone") -> None:
            self.to = to

        def run(self, onnx_model: onnx.ModelProto) -> onnx.ModelProto:
            def rename(graph: onnx.GraphProto, is_main_graph: bool) -> None:
                for number, node in enumerate(graph.node):
                    node.name = f"{self.to}{number}"

            self.traverse_graph(onnx_model.graph, rename)
            return onnx_model

    return DropNames


def test_a_registered_class_is_a_pass_like_any_other() -> None:
    drop_names()
    assert "drop_names" in poprt.get_registered_passes()
    made = tiered.optimize(proto(), passes="drop_names")
    assert made.graph.node[0].name == "gone0"
    with tiered.PassContext(disabled=["drop_names"]):
        assert tiered.Sequential(["drop_names"])(proto()).graph.node[0].name == "node_a"


def test_it_is_made_with_the_arguments_that_are_asked_for() -> None:
    drop_names()
    given = proto()
    made = poprt.get_pass("drop_names", to="n")(given)
    assert made.graph.node[0].name == "n0"
    assert given.graph.node[0].name == "node_a"
    assert poprt.get_pass("fold_constant", max_growth="2%").name == "fold_constant"
    with pytest.raises(UsageError, match="expected options by keyword"):
        poprt.get_pass("fold_constant", "2%")


def test_a_name_is_registered_once() -> None:
    drop_names()
    with pytest.raises(UsageError, match="there are two passes 'drop_names'"):
        drop_names()


def test_a_manager_runs_all_that_is_listed() -> None:
    made = poprt.PassManager([drop_names()(), fuse_relu, "eliminate_identity"]).run(proto())
    assert ops(made) == ["Relu", "Neg", "Abs"]
    assert made.graph.node[-1].name == "gone3"


def test_a_pass_that_fails_leaves_the_model_as_it_was() -> None:
    class Fails(poprt.Pass):
        def run(self, onnx_model: onnx.ModelProto) -> onnx.ModelProto:
            del onnx_model.graph.node[:]
            raise ValueError("boom")

    given = model()
    before = content(given)
    with pytest.raises(PassError, match="Fails failed"):
        Fails()(given)
    assert content(given) == before
