"""Invariants: whatever a pass changes behind the journal is found."""

from collections.abc import Callable

import numpy as np
import onnx
import pytest

from tests.small import drop_neg, fuse_relu, keep_abs, model
from tiered import Graph, Model, PassContext, Sequential, module_pass, optimize_model, proto_pass
from tiered.pipeline.instruments import Invariants
from tiered.support.errors import PassError

WITH_WEIGHT = """g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> {
    h = Add(x, w)  y = Relu(h)
}"""
NESTED = """g (float[2] x, bool c) => (float[2] y) {
    z = Neg(x)
    [If_1] y = If (c) <then_branch = t () => (float[2] a) { a = Relu(z) },
                       else_branch = e () => (float[2] b) { b = Abs(z) }>
}"""


def checked(edit: Callable[[Model], object], given: Model) -> None:
    pass_ = module_pass(opt_level=0, name="sly")(lambda model, ctx: edit(model) and None)
    with PassContext(instruments=[Invariants()]):
        pass_(given)


def write_proto(model: Model) -> None:
    model.main.nodes[0].proto.op_type = "Sigmoid"


def write_body(model: Model) -> None:
    owner = model.main.nodes_of("If")[0]
    owner.bodies[0].nodes[0].proto.doc_string = "changed"


def write_metadata(model: Model) -> None:
    model.skeleton.metadata_props.add(key="a", value="b")


def write_opset(model: Model) -> None:
    model.opset_imports[""] = 20


def write_info(model: Model) -> None:
    model.main.input_infos[0].type.tensor_type.shape.dim[0].dim_value = 9


def write_weight(model: Model) -> None:
    tensor = model.main.initializers[0].default
    assert tensor is not None
    assert tensor.proto is not None
    tensor.proto.float_data[0] = 5  # type: ignore[union-attr]  # a dense one


def drop_node(model: Model) -> None:
    model.main._nodes.popitem()


@pytest.mark.parametrize(
    ("edit", "text", "found"),
    [
        (write_proto, WITH_WEIGHT, "node 'node_h' is another"),
        (write_body, NESTED, "node 'a' is another"),
        (write_metadata, WITH_WEIGHT, "the model is another"),
        (write_opset, WITH_WEIGHT, "the model is another"),
        (write_info, WITH_WEIGHT, "graph 'g' is another"),
        (write_weight, WITH_WEIGHT, "initializer 'w' is another"),
        (drop_node, WITH_WEIGHT, "node 'node_y' is gone"),
    ],
)
def test_a_change_behind_the_journal_fails_the_pass(
    edit: Callable[[Model], object], text: str, found: str
) -> None:
    expected = f"sly changed the model outside of the primitives of Graph: {found}"
    with pytest.raises(PassError, match=expected):
        checked(edit, model(text))


@pytest.mark.parametrize(
    ("count", "more"), [(2, ""), (3, ""), (4, ", and 1 more"), (5, ", and 2 more")]
)
def test_three_changes_are_named(count: int, more: str) -> None:
    def all_nodes(model: Model) -> None:
        for node in model.main.nodes:
            node.proto.doc_string = "changed"

    lines = [f"[n{at}] a{at + 1} = Neg(a{at})" for at in range(count)]
    text = f"g (float[2] a0) => (float[2] a{count}) {{ {' '.join(lines)} }}"
    with pytest.raises(PassError) as caught:
        checked(all_nodes, model(text))
    names = ", ".join(f"node 'n{at}' is another" for at in range(min(count, 3)))
    assert str(caught.value) == (
        f"sly changed the model outside of the primitives of Graph: {names}{more}\n"
        "  this cannot be undone: load the model again"
    )


def test_a_view_that_is_inconsistent_fails_the_pass() -> None:
    def break_link(model: Model) -> None:
        model.main.nodes[0].output._users.clear()

    with pytest.raises(PassError, match="sly left the model inconsistent: users of 'h' differ"):
        checked(break_link, model(WITH_WEIGHT))


def test_a_sly_edit_is_found_beside_an_honest_one() -> None:
    def both(model: Model) -> None:
        first, second = model.main.nodes
        model.main.rename_node(first, "honest")
        second.proto.name = "sly"

    with pytest.raises(PassError, match="node 'sly' is another"):
        checked(both, model(WITH_WEIGHT))


def test_edits_by_the_primitives_are_fine() -> None:
    def honest(model: Model) -> None:
        graph: Graph = model.main
        add, relu = graph.nodes
        graph.rename_value(add.output, "renamed")
        graph.set_input(add, 1, graph.constant(np.ones(2, np.float32)))
        graph.discard(graph.value("w"))
        graph.set_attribute(relu, "axis", 3)
        model.set_opset("com.microsoft", 1)
        graph.replace(relu, [graph.op.Abs(add.output)])

    checked(honest, model(WITH_WEIGHT))


def test_a_node_with_bodies_may_go_with_all_that_is_inside() -> None:
    def inline(model: Model) -> None:
        owner = model.main.nodes_of("If")[0]
        model.main.replace(owner, [model.main.nodes[0].output])

    checked(inline, model(NESTED))


def test_the_default_pipeline_keeps_them() -> None:
    with PassContext(instruments=[Invariants()]):
        Sequential([fuse_relu, drop_neg, keep_abs])(model())
        optimize_model(model(NESTED), opt_level=3)


def test_a_pass_over_protos_may_exchange_the_whole_model() -> None:
    def to_abs(proto: onnx.ModelProto) -> onnx.ModelProto:
        proto.graph.node[1].op_type = "Abs"
        return proto

    given = model(WITH_WEIGHT)
    with PassContext(instruments=[Invariants()]):
        proto_pass(to_abs, opt_level=0)(given)
    assert [node.op_type for node in given.main.nodes] == ["Add", "Abs"]
