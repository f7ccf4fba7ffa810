import numpy as np
import onnx
import pytest

from tiered import Model, PassContext, UsageError, default_pipeline, get_pass
from tiered.runtime import Session, make_inputs
from tiered.testing import assert_rewrites, assert_unchanged, parse


def test_transposes_pass_a_concat_and_cancel() -> None:
    assert_rewrites(
        "convert_layout",
        "(float[1,2,2,3] x, float[1,2,2,3] z) => (float[1,2,2,6] y) { a = Transpose<perm=[0,3,1,2]>(x)  b = Transpose<perm=[0,3,1,2]>(z)  c = Concat<axis=1>(a, b)  y = Transpose<perm=[0,2,3,1]>(c) }",
        "(float[1,2,2,3] x, float[1,2,2,3] z) => (float[1,2,2,6] y) { y = Concat<axis=3>(x, z) }",
    )


def test_a_constant_of_fewer_dims_is_permuted_here() -> None:
    assert_rewrites(
        "convert_layout",
        "(float[1,2,2,3] x) => (float[1,2,2,3] y) <float[3,1,1] s = {1,2,3}> { a = Transpose<perm=[0,3,1,2]>(x)  b = Mul(a, s)  y = Transpose<perm=[0,2,3,1]>(b) }",
        "(float[1,2,2,3] x) => (float[1,2,2,3] y) <float[1,1,3] s = {1,2,3}> { y = Mul(x, s) }",
    )


def test_the_smaller_tensor_is_permuted() -> None:
    assert_rewrites(
        "convert_layout",
        '(float[1,2,2,3] x) => (float[1,3,4,4] y) <float[4] s = {1,2,2,1}> { a = Resize<mode="nearest">(x, , s)  y = Transpose<perm=[0,3,1,2]>(a) }',
        '(float[1,2,2,3] x) => (float[1,3,4,4] y) <float[4] s = {1,1,2,2}> { a = Transpose<perm=[0,3,1,2]>(x)  y = Resize<mode="nearest">(a, , s) }',
    )


def test_older_opsets_say_it_their_way() -> None:
    assert_rewrites(
        "convert_layout",
        "(float[1,2,2,3] x) => (float[1,2,2,1] y) { a = Transpose<perm=[0,3,1,2]>(x)  b = ReduceMax<axes=[1]>(a)  y = Transpose<perm=[0,2,3,1]>(b) }",
        "(float[1,2,2,3] x) => (float[1,2,2,1] y) { y = ReduceMax<axes=[3]>(x) }",
        opset=11,
    )


def test_regions_share_a_tensor_that_only_one_of_them_may_turn() -> None:
    assert_rewrites(
        "convert_layout",
        """(float[3,2,4] x, float[3,2,4] z) => (float[6,4,1] y) <int64[3] s = {6,1,4}> {
            a = Transpose<perm=[1,0,2]>(x)  b = Transpose<perm=[1,0,2]>(z)  c = Add(a, b)
            d = Transpose<perm=[1,0,2]>(c)  e = Reshape(d, s)  f = LogSoftmax<axis=2>(e)
            y = Transpose<perm=[0,2,1]>(f) }""",
        """(float[3,2,4] x, float[3,2,4] z) => (float[6,4,1] y) <int64[3] s = {6,4,1}> {
            a = Add(x, z)  b = Reshape(a, s)  y = LogSoftmax<axis=1>(b) }""",
    )


@pytest.mark.parametrize("opset", [7, 8])
def test_scales_that_are_an_attribute_move_too(opset: int) -> None:
    assert_rewrites(
        "convert_layout",
        '(float[1,2,2,3] x) => (float[1,4,4,3] y) { a = Transpose<perm=[0,3,1,2]>(x)  b = Upsample<mode="nearest", scales=[1.0,1.0,2.0,2.0]>(a)  y = Transpose<perm=[0,2,3,1]>(b) }',
        '(float[1,2,2,3] x) => (float[1,4,4,3] y) { y = Upsample<mode="nearest", scales=[1.0,2.0,2.0,1.0]>(x) }',
        opset=opset,
    )


@pytest.mark.parametrize(
    "resize",
    [
        'Resize<mode="linear">(a, roi, scales)',
        'Resize<mode="linear", axes=[-2,3]>(a, roi, two)',
        'Resize<mode="linear", coordinate_transformation_mode="tf_crop_and_resize">(a, middle, ones)',
        'Resize<mode="linear", keep_aspect_ratio_policy="not_larger">(a, roi, , sizes)',
    ],
)
def test_an_axis_that_keeps_its_size_is_resized_too(resize: str) -> None:
    assert_unchanged(
        "convert_layout",
        f"""(float[1,3,4,2] x) => (float[1,3,4,k] y) <float[0] roi = {{}},
            float[4] scales = {{1,1,1.2,2}}, float[2] two = {{1.2,2}},
            int64[4] sizes = {{1,4,3,2}}, float[4] ones = {{1,1,1,1}},
            float[8] middle = {{0,0,0.5,0.5,1,1,1,1}}> {{
            a = Transpose<perm=[0,2,1,3]>(x)  b = {resize}  y = Transpose<perm=[0,2,1,3]>(b) }}""",
    )


def test_an_axis_with_the_scale_1_may_go_elsewhere() -> None:
    assert_rewrites(
        "convert_layout",
        """(float[2,1,4,2] x) => (float[2,1,8,4] y) <float[4] s = {1,1,2,2}> {
            a = Transpose<perm=[1,0,2,3]>(x)  b = Resize<mode="linear">(a, , s)
            y = Transpose<perm=[1,0,2,3]>(b) }""",
        """(float[2,1,4,2] x) => (float[2,1,8,4] y) <float[4] s = {1,1,2,2}> {
            y = Resize<mode="linear">(x, , s) }""",
    )


def test_what_is_drawn_for_each_element_stays() -> None:
    assert_unchanged(
        "convert_layout",
        """(float[2,5,3] x) => (float[2,5,3] y) <float r = {0.5}, bool t = {1}> {
            a = Transpose<perm=[0,2,1]>(x)  b = Dropout<seed=3>(a, r, t)
            y = Transpose<perm=[0,2,1]>(b) }""",
    )


@pytest.mark.parametrize(
    ("opset", "dropout"),
    [
        (21, "Dropout(a)"),
        (21, "Dropout(a, r, never)"),
        (10, "Dropout<ratio=0.5>(a)"),
        (6, "Dropout<is_test=1>(a)"),
    ],
)
def test_a_dropout_that_drops_nothing_is_passed(opset: int, dropout: str) -> None:
    constants = "<float r = {0.5}, bool never = {0}>" if "never" in dropout else ""
    assert_rewrites(
        "convert_layout",
        f"""(float[2,5,3] x) => (float[2,5,3] y) {constants} {{
            a = Transpose<perm=[0,2,1]>(x)  b = {dropout}  y = Transpose<perm=[0,2,1]>(b) }}""",
        f"(float[2,5,3] x) => (float[2,5,3] y) {constants} {{ y = {dropout.replace('(a', '(x')} }}",
        opset=opset,
        runtime="none" if opset < 7 else "onnxruntime",
    )


def test_what_nobody_reads_may_go_on_the_way() -> None:
    assert_rewrites(
        "convert_layout",
        """(float[2,3,4] x) => (float[2,3,4] y) {
            a = Relu(x)  b = Exp(a)  c = Transpose<perm=[1,0,2]>(b)
            d = Transpose<perm=[1,0,2]>(c)  y = Neg(x) }""",
        "(float[2,3,4] x) => (float[2,3,4] y) { y = Neg(x) }",
    )


def test_sizes_that_a_reshape_no_longer_asks_for_go_with_what_made_them() -> None:
    assert_rewrites(
        "convert_layout",
        """(float[2,3,4] x, float[2,3,4] z) => (float[2,3,4] y, float[2,3,4] w) {
            a = Transpose<perm=[2,0,1]>(x)  b = Transpose<perm=[2,0,1]>(z)  c = Exp(b)
            s = Shape(c)  d = Reshape(a, s)  y = Transpose<perm=[1,2,0]>(d)
            e = Neg(b)  w = Transpose<perm=[1,2,0]>(e) }""",
        """(float[2,3,4] x, float[2,3,4] z) => (float[2,3,4] y, float[2,3,4] w)
            <int64[3] s = {2,3,4}> { y = Reshape(x, s)  w = Neg(z) }""",
    )


def test_a_reshape_that_may_be_of_nothing_gets_no_sizes_that_cannot_be() -> None:
    # In the other order it would be {0,3,-1}, which no batch of 0 can be given.
    assert_unchanged(
        "convert_layout",
        """(float[N,3,A,B] x) => (float[N,3,K] y)
            <int64[1] batch = {0}, int64[2] pixels = {2,3}, int64[1] three = {3}> {
            a = Transpose<perm=[0,2,3,1]>(x)  s = Shape(x)  n = Gather(s, batch)
            p = Gather(s, pixels)  k = ReduceProd(p)  t = Concat<axis=0>(n, k, three)
            b = Reshape(a, t)  y = Transpose<perm=[0,2,1]>(b) }""",
    )


def test_a_reshape_that_cannot_be_of_nothing_need_not_be_either() -> None:
    assert_rewrites(
        "convert_layout",
        """(float[N,3,A,B] x) => (float[N,3,K] y) <int64[3] s = {0,-1,3}> {
            a = Transpose<perm=[0,2,3,1]>(x)  b = Reshape(a, s)  y = Transpose<perm=[0,2,1]>(b) }""",
        "(float[N,3,A,B] x) => (float[N,3,K] y) <int64[3] s = {0,3,-1}> { y = Reshape(x, s) }",
    )


def test_sizes_that_are_put_in_order_may_be_turned_themselves() -> None:
    assert_rewrites(
        "convert_layout",
        """(float[2,3,4] x) => (float[2,3,4] y, int64[1,1,3] z) <int64[2] axes = {1,2}> {
            a = Transpose<perm=[2,0,1]>(x)  b = Exp(a)  y = Transpose<perm=[1,2,0]>(b)
            s = Shape(b)  c = Unsqueeze(s, axes)  z = Transpose<perm=[2,1,0]>(c) }""",
        """(float[2,3,4] x) => (float[2,3,4] y, int64[1,1,3] z)
            <int64[2] axes = {0,1}, int64[3] places = {2,0,1}> {
            y = Exp(x)  a = Shape(y)  s = Gather(a, places)  z = Unsqueeze(s, axes) }""",
    )


def test_what_an_operator_fixes_stays() -> None:
    assert_unchanged(
        "convert_layout",
        "(float[1,2,2,3] x) => (float[1,2,2,3] y) <float[3,3,1,1] w = {1,2,3,4,5,6,7,8,9}> { a = Transpose<perm=[0,3,1,2]>(x)  b = Conv(a, w)  y = Transpose<perm=[0,2,3,1]>(b) }",
    )


def test_a_scale_of_axes_that_are_not_normalised_keeps_them_in_their_order() -> None:
    assert_unchanged(
        "convert_layout",
        "(float[2,2,4] x, float[2,1,4] s) => (float[2,2,4] y) { a = Transpose<perm=[1,0,2]>(x)  b = LayerNormalization<axis=-1>(a, s)  y = Transpose<perm=[1,0,2]>(b) }",
    )


@pytest.mark.parametrize("attributes", ["", "<axis=-1>"])
def test_a_layer_normalization_older_than_its_opset_is_taken(attributes: str) -> None:
    # onnxruntime writes it, and takes it; onnx.checker does not.
    text = f"(float[2,2,4] x, float[4] s) => (float[2,2,4] y) {{ a = Transpose<perm=[1,0,2]>(x)  b = LayerNormalization{attributes}(a, s)  y = Transpose<perm=[1,0,2]>(b) }}"
    model = Model.from_proto(parse(text, opset=9))
    get_pass("convert_layout").apply(model)
    assert len(model.main) == 3


def test_one_axis_never_stands_in_two_places() -> None:
    assert_unchanged(
        "convert_layout",
        "(float[2,2] x) => (float[2,2] y) { a = Transpose<perm=[1,0]>(x)  b = Add(a, x)  y = Relu(b) }",
    )


def test_a_captured_value_is_permuted_for_the_body_too() -> None:
    proto = parse(
        "(float[2,3] x, bool c) => (float[3,2] y) { t = Transpose(x)  r = Relu(t)  u = Transpose(r)  "
        "y = If(c) <then_branch = g () => (float[3,2] a) { a = Transpose(u) }, "
        "else_branch = h () => (float[3,2] b) { b = Neg(r) }> }"
    )
    result = get_pass("convert_layout").apply(proto)
    Model.from_proto(result).check_view()
    feeds = make_inputs(proto, seed=3).feeds
    for taken in (True, False):
        feeds = {**feeds, "c": np.array(taken)}
        before, after = (Session(each).run(feeds)["y"] for each in (proto, result))
        assert np.array_equal(before, after)


def test_what_reads_a_tensor_that_others_make_in_another_order_reads_it_as_before() -> None:
    assert_rewrites(
        "convert_layout",
        """(int64[1,2,2,3] x, float[4,9] data) => (float[4,1,2,2,3] y) {
            a = Transpose<perm=[0,3,1,2]>(x)  b = Abs(a)  c = Transpose<perm=[0,2,3,1]>(b)
            d = Transpose(data)  e = Gather(d, c)  y = Transpose<perm=[4,0,1,2,3]>(e)
        }""",
        "(int64[1,2,2,3] x, float[4,9] data) => (float[4,1,2,2,3] y) { c = Abs(x)  y = Gather<axis=1>(data, c) }",
    )


def test_what_reads_the_sizes_of_a_tensor_reads_those_of_the_new_one() -> None:
    assert_rewrites(
        "convert_layout",
        """(float[2,3,4] x) => (float[2,3,4] y, float[4,3,2] z) {
            a = Transpose(x)  b = Relu(a)  s = Shape(b)  z = ConstantOfShape(s)  y = Transpose(b)
        }""",
        """(float[2,3,4] x) => (float[2,3,4] y, float[4,3,2] z) <int64[3] i = {2,1,0}> {
            y = Relu(x)  t = Shape(y)  s = Gather(t, i)  z = ConstantOfShape(s)
        }""",
    )


def test_a_view_of_a_body_serves_the_body_alone() -> None:
    proto = parse(
        "(float[2,3] x, bool c) => (float[3,2] y, float[3,2] z) { r = Relu(x)  s = Neg(r)  "
        "z = Transpose(s)  y = If(c) <then_branch = g () => (float[3,2] a) { a = Transpose(r) }, "
        "else_branch = h () => (float[3,2] b) { t = Transpose(r)  b = Neg(t) }> }"
    )
    result = get_pass("convert_layout").apply(proto)
    Model.from_proto(result).check_view()
    onnx.checker.check_model(result, full_check=True)
    feeds = make_inputs(proto, seed=3).feeds
    for taken in (True, False):
        feeds = {**feeds, "c": np.array(taken)}
        before, after = (Session(each).run(feeds) for each in (proto, result))
        assert all(np.array_equal(before[name], after[name]) for name in "yz")


def test_it_stands_in_the_default_pipeline() -> None:
    assert "convert_layout" in str(default_pipeline())


# --- channels last --------------------------------------------------------------------------------

CONVS = (
    "(float[1,3,5,5] x) => (float[1,2,5,5] y) <float[2,3,1,1] w = {1,2,3,4,5,6}, float[2,2,1,1] v = {1,2,3,4}> "
    '{ [one] a = Conv(x, w)  b = Relu(a)  c = MaxPool<kernel_shape=[3,3], auto_pad="SAME_UPPER">(b)  [two] y = Conv(c, v) }'
)


def operators(proto: onnx.ModelProto) -> list[str]:
    return [f"{node.domain}::{node.op_type}".removeprefix("::") for node in proto.graph.node]


def assert_same_outputs(before: onnx.ModelProto, after: onnx.ModelProto) -> None:
    onnx.checker.check_model(after, full_check=True)
    feeds = make_inputs(before, seed=1).feeds
    expected, actual = (Session(each).run(feeds) for each in (before, after))
    for name, array in expected.items():
        assert np.allclose(array, actual[name], rtol=1e-5, atol=1e-5)


def test_operators_become_functions_and_only_the_interface_turns() -> None:
    proto = parse(CONVS)
    result = get_pass("convert_layout", desired_layouts={"Conv": "NHWC"}).apply(proto)
    made = operators(result)
    assert made.count("Transpose") == 2
    assert made.count("tiered.nhwc::Conv") == 2
    assert made.count("tiered.nhwc::MaxPool") == 1
    assert "Conv" not in made
    assert {entry.domain for entry in result.opset_import} == {"", "tiered.nhwc"}
    assert [entry.key for entry in result.functions[0].metadata_props] == ["tiered.keep"]
    assert_same_outputs(proto, result)


def test_kernels_are_in_the_order_of_the_images() -> None:
    result = get_pass("convert_layout", desired_layouts={"Conv": "NHWC"}).apply(parse(CONVS))
    assert [list(entry.dims) for entry in result.graph.initializer] == [[2, 1, 1, 3], [2, 1, 1, 2]]


def test_levels_leave_the_functions_and_inline_lowers_them_when_asked() -> None:
    proto = parse(CONVS)
    nhwc = get_pass("convert_layout", desired_layouts={"Conv": "NHWC"}).apply(proto)
    with PassContext(opt_level=3):
        again = default_pipeline()(nhwc)
    assert operators(again).count("tiered.nhwc::Conv") == 2
    lowered = get_pass("inline", domains=("tiered.nhwc",)).apply(nhwc)
    back = get_pass("convert_layout").apply(get_pass("fold_constant").apply(lowered))
    assert sorted(operators(back)) == sorted(operators(proto))
    assert_same_outputs(proto, back)


def test_single_nodes_are_excepted_by_name() -> None:
    proto = parse(CONVS)
    wanted = {"Conv": "NHWC", "Conv@tw*": "NCHW"}
    result = get_pass("convert_layout", desired_layouts=wanted).apply(proto)
    assert operators(result).count("Conv") == 1
    assert operators(result).count("tiered.nhwc::Conv") == 1
    assert_same_outputs(proto, result)


@pytest.mark.parametrize(
    ("op_type", "text"),
    [
        ("AveragePool", "y = AveragePool<kernel_shape=[2,2]>(x)"),
        ("BatchNormalization", "y = BatchNormalization(x, s, s, s, s)"),
        ("ConvTranspose", "y = ConvTranspose<strides=[2,2]>(x, k)"),
        ("DepthToSpace", "y = DepthToSpace<blocksize=2>(x)"),
        ("GlobalAveragePool", "y = GlobalAveragePool(x)"),
        ("GlobalMaxPool", "y = GlobalMaxPool(x)"),
        ("GroupNormalization", "y = GroupNormalization<num_groups=2>(x, s, s)"),
        ("InstanceNormalization", "y = InstanceNormalization(x, s, s)"),
        ("LRN", "y = LRN<size=3>(x)"),
        ("LpPool", "y = LpPool<kernel_shape=[2,2]>(x)"),
        ("MaxPool", "y = MaxPool<kernel_shape=[2,2]>(x)"),
        ("Resize", 'y = Resize<mode="linear">(x, , scales)'),
        ("Resize", 'y = Resize<mode="cubic", cubic_coeff_a=-0.5>(x, , scales)'),
        ("SpaceToDepth", "y = SpaceToDepth<blocksize=2>(x)"),
    ],
)
def test_each_operator_with_channels_last(op_type: str, text: str) -> None:
    proto = parse(
        "(float[1,4,4,4] x) => (float[a,b,c,d] y) "
        f"<float[4] s = {{1,2,3,4}}, float[4,1,1,1] k = {{1,2,3,4}}, "
        f"float[4] scales = {{1,1,2,1.5}}> {{ {text} }}"
    )
    result = get_pass("convert_layout", desired_layouts={op_type: "NHWC"}).apply(proto)
    before, made, after = operators(result)
    assert (before, made) == ("Transpose", f"tiered.nhwc::{op_type}")
    # Of one channel, or one pixel, there is nothing to move.
    assert after in ("Transpose", "Reshape")
    assert_same_outputs(proto, result)


def test_what_resizes_to_sizes_is_a_function_of_its_own() -> None:
    proto = parse(
        "(float[1,2,4,4] x) => (float[1,2,6,7] y) <int64[4] sizes = {1,2,6,7}> "
        '{ y = Resize<mode="linear">(x, , , sizes) }'
    )
    result = get_pass("convert_layout", desired_layouts={"Resize": "NHWC"}).apply(proto)
    assert "tiered.nhwc::ResizeTo" in operators(result)
    assert_same_outputs(proto, result)


@pytest.mark.parametrize(
    "resize",
    [
        'Resize<mode="linear", axes=[2,3]>(x, , two)',
        'Resize<mode="linear", coordinate_transformation_mode="tf_crop_and_resize">(x, roi, scales)',
    ],
)
def test_a_resize_of_other_forms_stays(resize: str) -> None:
    proto = parse(
        "(float[1,2,4,4] x) => (float[1,2,8,8] y) <float[2] two = {2,2}, float[4] scales = "
        f"{{1,1,2,2}}, float[8] roi = {{0,0,0,0,1,1,1,1}}> {{ y = {resize} }}"
    )
    result = get_pass("convert_layout", desired_layouts={"Resize": "NHWC"}).apply(proto)
    assert operators(result) == ["Resize"]


@pytest.mark.parametrize("opset", [11, 12, 13])
def test_a_resize_is_a_function_from_opset_13_on(opset: int) -> None:
    proto = parse(
        "(float[1,3,4,4] x, float[3,3,1,1] w) => (float[1,3,8,8] y) <float[0] roi = {}, "
        'float[4] s = {1,1,2,2}> { c = Conv(x, w)  u = Resize<mode="linear">(c, roi, s)  '
        "y = Conv(u, w) }",
        opset=opset,
    )
    result = get_pass("convert_layout", desired_layouts={"Conv": "NHWC"}).apply(proto)
    onnx.checker.check_model(result, full_check=True)
    assert ("tiered.nhwc::Resize" in operators(result)) == (opset >= 13)
    assert_same_outputs(proto, result)


def test_functions_are_named_after_the_spatial_dims() -> None:
    proto = parse(
        "(float[1,2,5] x) => (float[1,1,5] y) <float[1,2,1] w = {1,2}> { y = Conv(x, w) }"
    )
    result = get_pass("convert_layout", desired_layouts={"Conv": "NHWC"}).apply(proto)
    assert "tiered.nhwc::Conv1D" in operators(result)
    assert_same_outputs(proto, result)


def test_old_files_have_no_functions() -> None:
    assert_unchanged(
        "convert_layout",
        f'<ir_version: 7, opset_import: ["" : 13]> g {CONVS.replace("[one]", "").replace("[two]", "")}',
        because="before IR 8 no NHWC functions: tiered convert --ir 8",
        desired_layouts={"Conv": "NHWC"},
    )


def test_a_layout_is_nhwc_or_nchw() -> None:
    with pytest.raises(UsageError, match="'NCHWc' is no layout"):
        get_pass("convert_layout", desired_layouts={"Conv": "NCHWc"}).apply(parse(CONVS))


def test_an_operator_that_does_not_exist_is_named() -> None:
    with pytest.raises(UsageError, match=r"no operator 'Convv'; did you mean 'Conv'"):
        get_pass("convert_layout", desired_layouts={"Convv": "NHWC"}).apply(parse(CONVS))


def test_who_reads_a_shape_reads_that_of_the_operator_in_its_new_order() -> None:
    assert_rewrites(
        "convert_layout",
        """(float[2,3,4] x, float[24] z) => (float[2,3,4] y, float[3,2,4] w) {
            t = Transpose<perm=[1,0,2]>(x)  r = Exp(t)  y = Transpose<perm=[1,0,2]>(r)
            s = Shape(r)  w = Reshape(z, s) }""",
        """(float[2,3,4] x, float[24] z) => (float[2,3,4] y, float[3,2,4] w)
            <int64[3] places = {1,0,2}> {
            y = Exp(x)  a = Shape(y)  b = Gather(a, places)  w = Reshape(z, b) }""",
    )


# --- operators of the target ----------------------------------------------------------------------

QUANTIZED = (
    "(uint8[1,3,5,5] x) => (uint8[1,2,3,3] y) <float s = {0.5}, uint8 z = {3}, "
    "int8[2,3,1,1] w = {1,2,-3,4,5,6}, int8 v = {0}, int32[2] b = {7,-9}, "
    "int8[2,2,1,1] u = {1,-2,3,4}> { a = QLinearConv(x, s, z, w, s, v, s, z, b)  "
    "p = MaxPool<kernel_shape=[3,3]>(a)  y = QLinearConv(p, s, z, u, s, v, s, z) }"
)


def quantized(desired: dict[str, str], backend: str) -> onnx.ModelProto:
    """Return the model above for a target, which computes the same bits."""
    proto = parse(QUANTIZED)
    with PassContext(opt_level=3, backend=backend):
        result = get_pass("convert_layout", desired_layouts=desired)(proto)
    feeds = make_inputs(proto, seed=1).feeds
    assert np.array_equal(Session(proto).run(feeds)["y"], Session(result).run(feeds)["y"])
    return result


def test_a_target_with_operators_for_channels_last_gets_those() -> None:
    result = quantized({"QLinearConv": "NHWC"}, "onnxruntime_cpu")
    assert operators(result) == [
        "Transpose",
        "com.microsoft::QLinearConv",
        "com.microsoft::NhwcMaxPool",
        "com.microsoft::QLinearConv",
        "Transpose",
    ]
    assert not result.functions


def test_other_targets_get_functions_for_them() -> None:
    result = quantized({"QLinearConv": "NHWC"}, "portable")
    onnx.checker.check_model(result, full_check=True)
    assert operators(result)[1:4] == [
        "tiered.nhwc::QLinearConv",
        "tiered.nhwc::MaxPool",
        "tiered.nhwc::QLinearConv",
    ]


def test_what_has_its_channels_last_already_stays() -> None:
    result = quantized({"QLinearConv": "NHWC"}, "onnxruntime_cpu")
    with PassContext(opt_level=3, backend="onnxruntime_cpu"):
        again = get_pass("convert_layout", desired_layouts={"QLinearConv": "NHWC"})(result)
    assert again.SerializeToString() == result.SerializeToString()


def test_a_pool_of_floats_has_no_such_operator() -> None:
    proto = parse(CONVS.replace("[one]", "").replace("[two]", ""))
    with PassContext(opt_level=3, backend="onnxruntime_cpu"):
        result = get_pass("convert_layout", desired_layouts={"MaxPool": "NHWC"})(proto)
    assert "tiered.nhwc::MaxPool" in operators(result)


GEMMS = {
    "of the first operand": (
        "(float[3,4] x, float[3,5] w, float[5] b) => (float[4,5] y) "
        "{ t = Transpose<perm=[1,0]>(x) y = Gemm(t, w, b) }",
        "(float[3,4] x, float[3,5] w, float[5] b) => (float[4,5] y) "
        "{ y = Gemm<transA=1>(x, w, b) }",
    ),
    "of both operands, that have a flag": (
        "(float[4,3] x, float[5,3] w, float[4,5] b) => (float[4,5] y) "
        "{ s = Transpose<perm=[1,0]>(x) t = Transpose<perm=[1,0]>(w)"
        " y = Gemm<transA=1, alpha=2.0>(s, t, b) }",
        "(float[4,3] x, float[5,3] w, float[4,5] b) => (float[4,5] y) "
        "{ y = Gemm<transB=1, alpha=2.0>(x, w, b) }",
    ),
    "of the result, with a bias that is constant": (
        "(float[N,3] x) => (float[2,N] y) <float[3,2] w = {1,2,3,4,5,6}, float[2] b = {7,8}> "
        "{ g = Gemm(x, w, b) y = Transpose<perm=[1,0]>(g) }",
        "(float[N,3] x) => (float[2,N] y) <float[3,2] w = {1,2,3,4,5,6}, float[2,1] b = {7,8}> "
        "{ y = Gemm<transA=1, transB=1>(w, x, b) }",
    ),
    "of all three": (
        "(float[3,4] x, float[5,3] w) => (float[5,4] y) "
        "{ s = Transpose<perm=[1,0]>(x) t = Transpose<perm=[1,0]>(w) g = Gemm(s, t)"
        " y = Transpose<perm=[1,0]>(g) }",
        "(float[3,4] x, float[5,3] w) => (float[5,4] y) { y = Gemm(w, x) }",
    ),
    "of one tensor as both operands": (
        "(float[3,4] x) => (float[4,4] y) { t = Transpose<perm=[1,0]>(x) y = Gemm<transB=1>(t, t) }",
        "(float[3,4] x) => (float[4,4] y) { y = Gemm<transA=1>(x, x) }",
    ),
}


@pytest.mark.parametrize("which", GEMMS)
def test_issue_19_a_gemm_takes_each_transpose(which: str) -> None:
    before, after = GEMMS[which]
    assert_rewrites("convert_layout", before, after)


def test_issue_19_a_product_and_a_sum_become_one_gemm_without_transposes() -> None:
    text = (
        "(float[3,4] x, float[3,5] w, float[5] b) => (float[4,5] y) "
        "{ t = Transpose<perm=[1,0]>(x) m = MatMul(t, w) y = Add(m, b) }"
    )
    with PassContext(opt_level=3):
        model = default_pipeline()(Model.from_proto(parse(text)))
    (gemm,) = model.main.nodes
    assert (gemm.op_type, gemm.attr("transA"), gemm.attr("transB")) == ("Gemm", 1, 0)


@pytest.mark.parametrize(
    "kernel",
    [
        "DequantizeLinear<axis=0>(w, s, z)",
        "DequantizeLinear(q, t)",
        "Relu(f)",
    ],
)
@pytest.mark.parametrize("operator", ["Conv", "ConvTranspose"])
def test_issue_20_a_kernel_that_is_computed_of_constants_is_so_channels_last(
    kernel: str, operator: str
) -> None:
    before = f"""<ir_version: 10, opset_import: ["" : 21]> g (float[1,2,4,4] x) => (float[1,2,4,4] y)
        <int8[2,2,1,1] w = {{1,2,3,4}}, float[2] s = {{0.5,0.25}}, int8[2] z = {{0,0}},
         float[2,2,1,1] f = {{1,2,3,4}}, float t = {{0.5}}> {{
            q = QuantizeLinear(f, t, z0)  k = {kernel}  y = {operator}(x, k)
        }}""".replace("float t =", "int8 z0 = {0}, float t =")
    nhwc = get_pass("convert_layout", desired_layouts={operator: "NHWC"})
    source = parse(before)
    model = nhwc.apply(Model.from_proto(source))
    calls = [node.op_type for node in model.main.nodes if node.domain == "tiered.nhwc"]
    assert calls == [operator]
    # Those of the image alone.
    assert len(model.main.nodes_of("Transpose")) == 2
    feeds = make_inputs(source).feeds
    expected, actual = (Session(each).run(feeds) for each in (source, model.to_proto()))
    assert np.array_equal(expected["y"], actual["y"])
    mark = model.mark()
    nhwc.apply(model)
    assert not model.changed_since(mark)


def test_a_kernel_that_is_an_input_is_permuted() -> None:
    nhwc = get_pass("convert_layout", desired_layouts={"Conv": "NHWC"})
    source = parse("(float[1,2,4,4] x, float[3,2,3,3] w) => (float[1,3,2,2] y) { y = Conv(x, w) }")
    model = nhwc.apply(Model.from_proto(source))
    assert len(model.main.nodes_of("Transpose")) == 3
    feeds = make_inputs(source).feeds
    expected, actual = (Session(each).run(feeds) for each in (source, model.to_proto()))
    assert np.allclose(expected["y"], actual["y"])


@pytest.mark.parametrize("last", ["Transpose<perm=[0,2,1]>(c)", "Relu(c)"])
def test_an_operator_whose_result_has_no_known_rank_is_left(last: str) -> None:
    # The dims 4 and 5 contradict each other, so nothing is inferred for their sum.
    text = (
        "(float[1,4,3] x, float[1,5,3] z) => (float[A,B,C] y) {"
        " a = Transpose<perm=[0,2,1]>(x) b = Transpose<perm=[0,2,1]>(z)"
        f" c = Add(a, b) y = {last} }}"
    )
    assert get_pass("convert_layout").apply(parse(text)) == parse(text)
