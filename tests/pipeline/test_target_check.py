"""What a target takes before and after its passes, and who mended what."""

import pytest

from tests.targets.test_backend import backend
from tiered import Backend, Model, get_backend, pipeline_for
from tiered.pipeline.target_check import ResolvedRefusal, check_target
from tiered.support.errors import BackendNotFoundError
from tiered.testing import parse

MODEL = """(float[N,2] x) => (float[N,2] y) <float[2] w = {1,2}> {
    a = Identity(x)  b = Add(a, w)  c = Dropout(b)  y = Tanh(c) }"""


def test_what_passes_remove_is_mended_by_them() -> None:
    target = backend("[operators]\nAdd = true")
    check = check_target(Model.from_proto(parse(MODEL)), backend=target)
    assert {gap.operator for gap in check.before.gaps} == {"Identity", "Dropout", "Tanh"}
    assert [(mended.by, mended.operator) for mended in check.mended] == [
        ("simplify_inference", "Dropout"),
        ("eliminate_identity", "Identity"),
    ]
    assert [gap.operator for gap in check.after.gaps] == ["Tanh"]


def test_a_node_that_stays_is_mended_by_the_pass_that_made_it_acceptable() -> None:
    target = backend(
        "[operators]\nAdd = true\nTanh = true\n[[pipeline]]\n"
        "edit = 'set const_input_shape{shape={x: [4,2]}}'",
        shapes="static",
    )
    model = Model.from_proto(parse("(float[N,2] x) => (float[N,2] y) { y = Tanh(x) }"))
    check = check_target(model, backend=target, required=["const_input_shape"])
    reasons = ("dynamic dims N; it takes static shapes",)
    assert check.mended == (ResolvedRefusal("Tanh", reasons, "const_input_shape", ("y",)),)
    assert check.after.is_met


def test_a_pipeline_of_ones_own_is_all_that_runs() -> None:
    target = backend("[operators]\nAdd = true")
    model = Model.from_proto(parse(MODEL))
    check = check_target(model, backend=target, edits=["drop eliminate_identity"])
    assert [mended.operator for mended in check.mended] == ["Dropout"]


def test_a_pipeline_for_the_name_of_a_backend() -> None:
    assert str(pipeline_for("tensorrt")) == str(pipeline_for(get_backend("tensorrt")))
    with pytest.raises(BackendNotFoundError, match="did you mean 'tensorrt'"):
        pipeline_for("tensort")


def test_a_node_that_is_exchanged_for_one_that_is_refused_too_is_not_mended() -> None:
    model = Model.from_proto(
        parse(
            """(float[N,1,4,4] x) => (float[N,1,4,4] y)
            <float[1,1,1,1] w = {2}, float[1] k = {1}, float[1] v = {3}>
            { c = Conv(x, w)  b = BatchNormalization(c, k, k, k, v)  y = Relu(b) }"""
        )
    )
    check = check_target(model, opt_level=3, backend=Backend(name="npu"))
    # fuse_bn_into_conv makes another Conv, which the target refuses as the first one.
    assert [gap.operator for gap in check.after.gaps] == ["Conv", "Relu"]
    assert [(each.by, each.operator) for each in check.mended] == [
        ("fuse_bn_into_conv", "BatchNormalization")
    ]
