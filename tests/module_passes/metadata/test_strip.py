from typing import Any

import onnx
import pytest

from tests.rollback import assert_undone
from tiered import optimize_model
from tiered.pipeline import parse_pipeline
from tiered.support.errors import OptionError
from tiered.testing import assert_rewrites, assert_unchanged, parse

TEXT = """(float[2] x, bool c) => (float[2] y) <float[2] weight_of_a_layer = {1,2}> {
    a_long_inner_name = Add(x, weight_of_a_layer)
    y = If(c) <then_branch = t () => (float[2] r) {
                   another_inner_name = Neg(a_long_inner_name)  r = Abs(another_inner_name) },
               else_branch = e () => (float[2] s) { s = Identity(a_long_inner_name) }> }"""


def described() -> onnx.ModelProto:
    """Return a model with texts at all places."""
    model = parse(TEXT)
    model.ir_version = 10
    then = model.graph.node[1].attribute[0].g
    inner = model.graph.value_info.add(name="a_long_inner_name", type=model.graph.output[0].type)
    interface = (model.graph.input[0], model.graph.output[0])
    holders: tuple[Any, ...] = (
        *(model, model.graph, *model.graph.node, then, *then.node, then.output[0], inner),
        *(model.graph.initializer[0], *interface),
    )
    for at, holder in enumerate(holders):
        holder.doc_string = f"text {at}"
        holder.metadata_props.add(key="pkg.stack_trace", value="/srv/me/model.py")
        holder.metadata_props.add(key="tiered.keep", value="a mark")
    for at, node in enumerate((*model.graph.node, *then.node)):
        node.name = f"/model/layers/{at}"
    return model


def stripped(*what: str) -> onnx.ModelProto:
    made = optimize_model(described(), passes=parse_pipeline(f"strip{{what=[{','.join(what)}]}}"))
    return made.model.to_proto()


def test_metadata_go_and_marks_of_tiered_stay() -> None:
    made = stripped("metadata")
    interface = made.graph.input[0].metadata_props, made.graph.output[0].metadata_props
    text = str(made)
    assert text.count("/srv/me/model.py") == sum(map(len, interface)) // 2 == 2
    assert text.count("a mark") == str(described()).count("a mark")
    assert "text 0" in text
    assert made.graph.node[0].name == "/model/layers/0"


def test_doc_strings_go() -> None:
    made = stripped("docs")
    assert [line.strip() for line in str(made).splitlines() if "text " in line] == [
        f'doc_string: "{info.doc_string}"'
        for info in (described().graph.input[0], described().graph.output[0])
    ]
    assert str(made).count("/srv/me") == str(described()).count("/srv/me")


def test_names_of_nodes_go_and_inner_tensors_get_short_ones() -> None:
    made = stripped("names")
    assert not any(node.HasField("name") for node in made.graph.node)
    assert [value.name for value in (*made.graph.input, *made.graph.output)] == ["x", "c", "y"]
    assert made.graph.initializer[0].name == "t0"
    assert made.graph.node[0].output == ["t1"]
    assert "another_inner_name" not in str(made)
    assert "text 0" in str(made)
    onnx.checker.check_model(made, full_check=True)


def test_all_of_it() -> None:
    made = optimize_model(described(), passes=parse_pipeline("strip{what=[all]}"), verify=True)
    found = [str(remark) for remark in made.remarks if remark.pass_name == "strip"]
    assert any(text.startswith("strip: metadata pkg.stack_trace: ") for text in found)
    assert any(text.startswith("strip: doc strings: 60 bytes in 10 places") for text in found), (
        found
    )
    assert any(text.startswith("strip: names of nodes: 60 bytes in 4 places") for text in found), (
        found
    )
    assert any(text.startswith("strip: names of tensors: ") for text in found)
    again = optimize_model(made.model, passes=parse_pipeline("strip{what=[all]}"))
    assert not again.report.changing()


def test_short_names_that_are_taken_stay() -> None:
    assert_rewrites(
        "strip",
        "(float[2] t0) => (float[2] y) { t1 = Neg(t0)  long_name = Abs(t1)  y = Exp(long_name) }",
        "(float[2] t0) => (float[2] y) { t1 = Neg(t0)  t3 = Abs(t1)  y = Exp(t3) }",
        what=("names",),
    )


def test_what_is_not_there() -> None:
    assert_unchanged(
        "strip",
        "(float[2] x) => (float[2] y) { y = Neg(x) }",
        because="the model has none of these texts",
    )


def test_training_graphs_name_tensors() -> None:
    model = described()
    model.training_info.add()
    made = optimize_model(model, passes=parse_pipeline("strip{what=[names]}")).model.to_proto()
    assert made.graph.node[0].output == ["a_long_inner_name"]
    assert made.graph.node[0].name == ""


def test_a_part_that_is_none_is_an_error() -> None:
    with pytest.raises(OptionError, match="what"):
        parse_pipeline("strip{what=[name]}")


def test_all_of_it_is_undone() -> None:
    assert_undone("strip", described(), what=("all",))
