"""Anybody else's ModelProto -> ModelProto functions as passes."""

from typing import Any

import onnx
import pytest

from tests.small import content, fuse_relu, model, ops, proto
from tiered import Model, PassContext, Sequential, proto_pass
from tiered.support.errors import ModelError, PassError, UsageError


def copied(given: onnx.ModelProto) -> onnx.ModelProto:
    made = onnx.ModelProto()
    made.CopyFrom(given)
    return made


@proto_pass
def abs_to_neg(given: onnx.ModelProto) -> onnx.ModelProto:
    """Of no meaning: Abs => Neg."""
    made = copied(given)
    for node in made.graph.node:
        if node.op_type == "Abs":
            node.op_type = "Neg"
    return made


@proto_pass(opt_level=2, numerics="reassociating")
def drop_last(given: onnx.ModelProto, *, times: int = 1) -> None:
    """Of no meaning, in place: the last node goes, and the one before makes the output."""
    for _ in range(times):
        output = given.graph.node.pop().output[0]
        given.graph.node[-1].output[0] = output


def test_the_model_stays_the_same_object() -> None:
    view = model()
    assert abs_to_neg.apply(view) is view
    assert ops(view) == ["Relu", "Relu", "Neg", "Neg"]
    view.check_view()


def test_a_proto_in_gives_a_new_one() -> None:
    given = proto()
    assert ops(abs_to_neg.apply(given)) == ["Relu", "Relu", "Neg", "Neg"]
    assert ops(given) == ["Relu", "Relu", "Neg", "Abs"]


def test_a_function_may_edit_what_it_is_given() -> None:
    view = model()
    drop_last(view)
    assert ops(view) == ["Relu", "Relu", "Neg"]


def test_keyword_only_parameters_are_options() -> None:
    view = model()
    drop_last.with_options(times=2)(view)
    assert ops(view) == ["Relu", "Relu"]
    assert str(drop_last.with_options(times=2)) == "drop_last{times=2}"
    assert (drop_last.info.kind, drop_last.info.opt_level) == ("proto", 2)


def test_it_stands_in_a_pipeline_between_others() -> None:
    view = model()
    with PassContext() as ctx:
        Sequential([fuse_relu, abs_to_neg, drop_last])(view)
    assert ops(view) == ["Relu", "Neg"]
    assert [(r.info.name, r.changed, r.rewrites) for r in ctx.report.results[:3]] == [
        ("fuse_relu", True, 1),
        ("abs_to_neg", True, 1),
        ("drop_last", True, 1),
    ]


def test_passes_after_it_look_at_all_of_it() -> None:
    @proto_pass
    def add_relu(given: onnx.ModelProto) -> None:
        last = given.graph.node[-1]
        last.op_type = "Relu"
        given.graph.node[-2].op_type = "Relu"

    view = model()
    Sequential([fuse_relu, add_relu, fuse_relu])(view)
    assert ops(view) == ["Relu"]


def test_it_can_be_undone() -> None:
    view = model()
    before, nodes = content(view), view.main.nodes
    mark, main = view.mark(), view.main
    abs_to_neg.apply(view)
    assert nodes[0].graph is None
    assert view.main is not main
    view.undo_to(mark)
    assert content(view) == before
    assert (view.main, view.main.nodes) == (main, nodes)
    view.check_view()


def test_edits_before_and_after_are_undone_in_order() -> None:
    view = model()
    before, mark = content(view), view.mark()
    fuse_relu.apply(view)
    abs_to_neg.apply(view)
    view.main.op.Relu(view.main.inputs[0])
    view.undo_to(mark)
    assert content(view) == before
    view.check_view()


def test_types_are_those_of_the_new_content() -> None:
    @proto_pass
    def transpose(given: onnx.ModelProto) -> None:
        node = given.graph.node[0]
        node.op_type = "Transpose"
        given.graph.node[1].op_type = "Transpose"

    view = model("g (float[2,3] x) => (float[2,3] y) { a = Relu(x) b = Relu(a) y = Neg(b) }")
    assert view.main.nodes[0].output.shape == (2, 3)
    mark = view.mark()
    transpose.apply(view)
    assert view.main.nodes[0].output.shape == (3, 2)
    view.undo_to(mark)
    assert view.main.nodes[0].output.shape == (2, 3)


def test_bodies_and_functions_come_along() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "d" : 1]>
    g (float[2] x, bool c) => (float[2] y) {
        f = d.f(x)
        y = If(c) <then_branch = t () => (float[2] p) { p = Relu(f) },
                   else_branch = e () => (float[2] q) { q = Abs(f) }>
    }
    <domain: "d", opset_import: ["" : 21]> f (v) => (w) { w = Abs(v) }"""

    @proto_pass
    def touch(given: onnx.ModelProto) -> None:
        given.graph.doc_string = "touched"

    view = Model.from_proto(onnx.parser.parse_model(text))
    before, mark = content(view), view.mark()
    touch.apply(view)
    assert len(list(view.graphs())) == 4
    assert all(graph.model is view for graph in view.graphs())
    view.check_view()
    view.undo_to(mark)
    assert content(view) == before
    view.check_view()


def test_what_changes_nothing_is_no_edit() -> None:
    view = model()
    length = len(view.journal)
    proto_pass(copied).apply(view)
    assert len(view.journal) == length


def test_a_limit_on_rewrites_holds_for_it_too() -> None:
    view = model()
    before = content(view)
    with PassContext(rewrite_limit=0):
        drop_last(view)
    assert content(view) == before


# --- what functions return ------------------------------------------------------------------------


def test_the_model_may_come_first_in_a_tuple() -> None:
    def simplified(given: onnx.ModelProto) -> Any:
        drop_last.function(given)
        return given, True

    view = model()
    proto_pass(simplified, name="onnxsim").apply(view)
    assert ops(view) == ["Relu", "Relu", "Neg"]


def test_a_function_that_doubts_itself_fails_the_pass() -> None:
    view = model()
    before = content(view)
    with pytest.raises(PassError, match="reported a failed result"):
        proto_pass(lambda given: (given, False), name="doubtful").apply(view)
    assert content(view) == before


def test_anything_but_a_model_is_refused() -> None:
    with pytest.raises(UsageError, match="returned an object of type str; expected a ModelProto"):
        proto_pass(lambda given: "done", name="wrong").apply(model())


def test_a_model_that_makes_no_sense_is_refused() -> None:
    @proto_pass
    def broken(given: onnx.ModelProto) -> None:
        given.graph.node[0].input[0] = "nowhere"

    view = model()
    before = content(view)
    with pytest.raises(ModelError, match="nowhere"):
        broken.apply(view)
    assert content(view) == before
    view.check_view()


# --- the interface --------------------------------------------------------------------------------


def rename_output(given: onnx.ModelProto) -> None:
    given.graph.output[0].name = given.graph.node[-1].output[0] = "z"


def test_another_interface_fails_the_pass() -> None:
    view = model()
    before = content(view)
    with pytest.raises(PassError, match=r"rename_output changed the outputs .*changes_interface"):
        proto_pass(rename_output).apply(view)
    assert content(view) == before


def test_another_interface_can_be_declared() -> None:
    view = model()
    proto_pass(rename_output, changes_interface=True).apply(view)
    assert [value.name for value in view.main.outputs] == ["z"]


def test_declared_dims_stay_as_they_were() -> None:
    @proto_pass
    def forget_dims(given: onnx.ModelProto) -> None:
        given.graph.output[0].type.tensor_type.ClearField("shape")
        given.graph.node[0].op_type = "Abs"

    view = model()
    forget_dims.apply(view)
    assert view.to_proto().graph.output == proto().graph.output


def test_conditions_and_declarations_are_those_of_any_pass() -> None:
    def has_relu(view: Model) -> bool:
        return bool(view.main.nodes_of("Relu"))

    guarded = proto_pass(copied, precondition=has_relu, opt_level=1)
    with pytest.raises(PassError, match="copied: precondition has_relu"):
        guarded(model("g (float[2] x) => (float[2] y) { y = Abs(x) }"))
