import numpy as np
from onnx.reference import ReferenceEvaluator

import tiered
from tests.conformance.at_rest import unrest
from tiered import Model, PassContext, get_pass
from tiered.targets import Backend
from tiered.testing import assert_rewrites, assert_unchanged, parse

TEXT = (
    "(float[1,3,5,5] x) => (float[1,3,5,5] y) <float[3,3,1,1] w = {1,2,3,4,5,6,7,8,9}> "
    "{ a = Conv(x, w)  b = Relu(a)  y = LRN<size=3>(b) }"
)
IMAGES = Backend(name="images", layout="NCHW", layouts={"Conv": "NHWC"}, unlisted="standard")


def context(backend: Backend | str) -> PassContext:
    return PassContext.isolated(opt_level=3, backend=backend)


def test_a_convolution_goes_channels_last_between_transposes() -> None:
    header = '<ir_version: 10, opset_import: ["" : 21, "tiered.nhwc" : 1]>'
    function = """<domain: "tiered.nhwc", opset_import: ["" : 21]>
        Conv <group,pads,auto_pad,strides,dilations,kernel_shape>(X, W, B) => (Y) {
            x = Transpose<perm = [0,3,1,2]>(X)  w = Transpose<perm = [0,3,1,2]>(W)
            c = Conv<group: int = @group, pads: ints = @pads, auto_pad: string = @auto_pad,
                strides: ints = @strides, dilations: ints = @dilations,
                kernel_shape: ints = @kernel_shape>(x, w, B)
            Y = Transpose<perm = [0,2,3,1]>(c) }"""
    assert_rewrites(
        "alter_op_layout",
        TEXT,
        f"{header} g (float[1,3,5,5] x) => (float[1,3,5,5] y)"
        " <float[3,1,1,3] w = {1,2,3,4,5,6,7,8,9}> { t = Transpose<perm = [0,2,3,1]>(x)"
        ' c = tiered.nhwc.Conv(t, w, "")  a = Transpose<perm = [0,3,1,2]>(c)  b = Relu(a)'
        f" y = LRN<size=3>(b) }} {function}",
        backend=IMAGES,
    )


def test_calls_run_on_the_reference() -> None:
    proto = parse(TEXT)
    model = Model.from_proto(proto)
    get_pass("alter_op_layout").apply(model, context(IMAGES))
    x = np.random.default_rng(0).standard_normal((1, 3, 5, 5)).astype(np.float32)
    expected, found = (
        np.asarray(ReferenceEvaluator(each).run(["y"], {"x": x}))
        for each in (proto, model.to_proto())
    )
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_what_the_target_takes_in_no_order_is_left_to_legalize() -> None:
    text = (
        "(float[1,2,4,4] x) => (float[1,2,4,4] y) <float[2,2,1,1] w = {1,2,3,4}, float[2] s = {1,2}> "
        "{ a = Conv(x, w)  b = Relu(a)  y = BatchNormalization(b, s, s, s, s) }"
    )
    made = tiered.optimize(parse(text), backend="nhwc_edge", opt_level=3)
    assert tiered.get_backend("nhwc_edge").coverage(Model.from_proto(made)).is_met


def test_operators_have_the_layout_of_the_backend() -> None:
    model = Model.from_proto(parse(TEXT))
    get_pass("alter_op_layout").apply(model, context(IMAGES))
    assert [len(model.main.nodes_of(name)) for name in ("Conv", "LRN", "Transpose")] == [0, 1, 2]
    assert len(model.main.nodes_of("Conv", "tiered.nhwc")) == 1


def test_a_backend_without_a_preference_leaves_the_model_alone() -> None:
    assert_unchanged(
        "alter_op_layout",
        TEXT,
        because="the backend prefers no operator channels last",
        backend="portable",
    )


def test_an_operator_that_has_any_order_gets_no_transposes() -> None:
    model = parse(
        "(float[1,3,8,8] x) => (float[1,3,16,16] y) <float[4] s = {1,1,2,2}>"
        ' { y = Resize<mode = "nearest">(x, , s) }'
    )
    assert get_pass("alter_op_layout").apply(model, context("nhwc_edge")) == model
    for level in (3, 4):
        assert not unrest(model, level, "nhwc_edge")


def test_old_files_have_no_functions() -> None:
    assert_unchanged(
        "alter_op_layout",
        f'<ir_version: 7, opset_import: ["" : 13]> g {TEXT}',
        because="before IR 8 no NHWC functions: tiered convert --ir 8",
        backend=Backend(name="images", layout="NHWC", unlisted="standard"),
    )
