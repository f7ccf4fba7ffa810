"""Operators with channels last: which ones, how they are asked for, and their functions."""

from functools import partial

import numpy as np
import onnx
import pytest

from tests.small import made_by, named, parsed
from tiered import Model, Node, Skip, UsageError
from tiered.analysis.layout.axis_propagation import AxisPropagation, Permuted
from tiered.analysis.layout.nhwc import (
    CHANNELS_LAST,
    DOMAIN,
    IMAGE_OPERATORS,
    KEEP,
    KERNEL_SLOT,
    MICROSOFT,
    VECTOR_SLOTS,
    _is_plain_resize,
    _writer,
    channels_last,
    checked_layouts,
    declare,
    layout_wanted,
    standard_only,
    with_channels_last,
)
from tiered.analysis.layout.rules import propagation_of
from tiered.runtime import Session
from tiered.testing import parse

CONV = (
    "(float[1,2,4,5] x, float[3,2,2,2] w, float[3] b) => (float[1,3,3,4] y) { y = Conv(x, w, b) }"
)
ALL = dict.fromkeys(IMAGE_OPERATORS, "NHWC")
LAST = (0, 2, 3, 1)


# --- what a user asks for -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layouts", "message"),
    [
        ({"Conv": "NCWH"}, "desired_layouts: 'NCWH' is no layout; NCHW and NHWC are"),
        ({"Conf": "NHWC"}, "desired_layouts: there is no operator 'Conf'; did you mean 'Conv'?"),
        ({"Conv@nod*": "NHWC"}, "desired_layouts: no Conv has the name 'nod*'"),
    ],
)
def test_a_wish_that_nothing_can_meet_is_an_error(layouts: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        checked_layouts(parsed(CONV), layouts, lambda node, skip: None)
    assert str(caught.value).startswith(message)


def test_operators_of_the_model_may_be_asked_for_too() -> None:
    model = parsed("(float[2] x) => (float[2] y) { y = acme.Any(x) }")
    layouts = {"Any": "NHWC", "Conv": "NCHW"}
    assert checked_layouts(model, layouts, lambda node, skip: None) == layouts


@pytest.mark.parametrize(
    ("ir", "layout", "is_kept"), [(7, "NHWC", False), (8, "NHWC", True), (7, "NCHW", True)]
)
def test_before_ir_8_there_are_no_functions(ir: int, layout: str, is_kept: bool) -> None:
    model = parsed(f'<ir_version: {ir}, opset_import: ["" : 15]> g {CONV}')
    skipped = []
    found = checked_layouts(model, {"Conv": layout}, lambda node, skip: skipped.append(str(skip)))
    assert found == ({"Conv": layout} if is_kept else {})
    expected = "before IR 8 no NHWC functions: tiered convert --ir 8"
    assert skipped == ([] if is_kept else [expected])


def test_a_wish_for_a_node_comes_before_that_for_its_operator() -> None:
    text = """(float[1,2,4,5] x, float[2,2,1,1] w) => (float[1,2,4,5] y) {
        [first] a = Conv(x, w)  [second] b = Conv(a, w)  y = com.microsoft.Conv(b, w) }"""
    model = parsed(text)
    first, second, other = (made_by(model, name) for name in "aby")
    wanted = {"Conv": "NHWC", "Conv@sec*": "NCHW", "Relu@first": "NCHW"}
    assert layout_wanted(first, wanted) == "NHWC"
    assert layout_wanted(second, wanted) == "NCHW"
    assert layout_wanted(other, wanted) is None
    assert layout_wanted(first, {"MaxPool": "NHWC"}) is None


@pytest.mark.parametrize(
    ("rank", "expected"), [(3, (0, 2, 1)), (4, (0, 2, 3, 1)), (5, (0, 2, 3, 4, 1))]
)
def test_channels_move_to_the_end(rank: int, expected: tuple[int, ...]) -> None:
    assert channels_last(rank) == expected


def test_a_plain_target_has_onnxs_own_operators() -> None:
    assert standard_only("Conv", "", None)
    assert not standard_only("Conv", DOMAIN, None)


# --- which operators ------------------------------------------------------------------------------


def found(
    text: str, wanted: dict[str, str] | None = None, opset: int = 21, supports: str = "standard"
) -> tuple[AxisPropagation | Skip, AxisPropagation | Skip, Node]:
    """Return the propagation with channels last, that of the standard, and the node of 'y'."""
    node = made_by(parsed(text, opset=opset), "y")
    standard = propagation_of(node)

    def takes(op_type: str, domain: str, dtype: int | None) -> bool:
        return {"standard": not domain, "all": True, "none": False}[supports]

    return (
        with_channels_last(node, standard, ALL if wanted is None else wanted, takes),
        standard,
        node,
    )


def has_last(propagation: AxisPropagation | Skip, rank: int = 4) -> bool:
    return not isinstance(propagation, Skip) and propagation.allows(channels_last(rank))


@pytest.mark.parametrize(
    "line",
    ["MaxPool<kernel_shape=[2,2]>(x)", "AveragePool<kernel_shape=[2,2]>(x)",
     "GlobalAveragePool(x)", "LRN<size=1>(x)", "InstanceNormalization(x, s, s)",
     "SpaceToDepth<blocksize=2>(x)", 'Resize<mode="linear">(x, , f)', "ConvTranspose(x, w)"],
)  # fmt: skip
def test_images_have_channels_last(line: str) -> None:
    text = f"""(float[1,2,4,4] x, float[2] s, float[2,2,1,1] w) => (float[A,B,C,D] y)
        <float[4] f = {{1,1,2,2}}> {{ y = {line} }}"""
    propagation, standard, node = found(text)
    assert has_last(propagation)
    assert not has_last(standard)
    assert isinstance(propagation, AxisPropagation)
    assert propagation.inputs[0] == propagation.outputs[0] == (0, 1, 2, 3)
    kernels = [labels for labels in propagation.inputs[1:] if labels is not None]
    assert kernels == ([(0, 1, 2, 3)] if node.is_op("ConvTranspose") else [])
    assert not propagation.allows((0, 3, 2, 1))


def test_a_kernel_has_the_order_of_the_images() -> None:
    propagation, _, _ = found(CONV)
    assert isinstance(propagation, AxisPropagation)
    assert propagation.inputs == ((0, 1, 2, 3), (0, 1, 2, 3), None)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (CONV, {"Conv": "NCHW"}),
        (CONV, {"Conv": "NCHW", "MaxPool": "NHWC"}),
        (CONV, {}),
        ("(float[1,2] x) => (float[1,2] y) { y = LRN<size=1>(x) }", None),
        ("(float[1,2,4,4] x) => (float[1,2,3,3] y, int64[1,2,3,3] i)"
         " { y, i = MaxPool<kernel_shape=[2,2]>(x) }", None),
        ("(float[1,2,4,4] x) => (float[1,2,4,4] y) { y = Relu(x) }", {"Conv": "NCHW"}),
        ("(float[1,2,4,4] x, float[W] w) => (float[A,B,C,D] y) { y = Conv(x, w) }", None),
        ('(float[1,2,4,4] x) => (float[1,2,8,8] y) <float[4] s = {1,1,2,2}> '
         '{ y = Resize<mode="linear", coordinate_transformation_mode="tf_crop_and_resize">'
         "(x, s, s) }", None),
    ],
)  # fmt: skip
def test_what_is_not_asked_for_or_has_no_such_form_stays(
    text: str, wanted: dict[str, str] | None
) -> None:
    propagation, standard, _ = found(text, wanted)
    assert propagation is standard


def test_an_operator_that_follows_another_one_may_have_channels_last() -> None:
    assert has_last(found(CONV, {"MaxPool": "NHWC"})[0])


def test_a_target_without_the_operator_in_either_order_has_other_operators_for_it() -> None:
    propagation, standard, _ = found(CONV, supports="none")
    assert propagation is standard


def test_a_node_whose_output_an_annotation_names_stays() -> None:
    proto = parse(CONV)
    annotation = proto.graph.quantization_annotation.add(tensor_name="x")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="y")
    node = made_by(Model.from_proto(proto), "y")
    standard = propagation_of(node)
    assert with_channels_last(node, standard, ALL) is standard


def test_nodes_that_are_pinned_or_have_parameters_of_a_call_stay() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
        g (float[1,2,4,4] x, float[2,2,1,1] w) => (float[1,2,4,4] y) { y = own.F<g=1>(x, w) }
        <domain: "own", opset_import: ["" : 21]> F <g> (x, w) => (y) {
        y = Conv<group: int = @g>(x, w) }"""
    model = Model.from_proto(onnx.parser.parse_model(text))
    (function,) = model.functions
    (node,) = function.nodes
    standard = propagation_of(node)
    assert with_channels_last(node, standard, ALL) is standard


# --- how they are written -------------------------------------------------------------------------


def written(text: str, supports: str = "standard", opset: int = 21) -> Model:
    """Write the node of 'y' with channels last, with Transposes around it."""
    propagation, _, node = found(text, opset=opset, supports=supports)
    assert isinstance(propagation, AxisPropagation)
    graph = node.owner

    def fetch(op: Permuted, slot: int) -> object:
        value = node.inputs[slot]
        assert value is not None
        return graph.op.Transpose(value, perm=channels_last(value.rank or 0))

    rank = node.output.rank or 0
    last = channels_last(rank)
    since = graph.model.peek_serial()
    (made,) = propagation.write(Permuted(node, propagation, last, fetch))  # type: ignore[arg-type]  # of Values
    back = graph.op.Transpose(made, perm=[0, rank - 1, *range(1, rank - 1)])
    graph.replace(node, [back], since=since)
    model = graph.model
    assert isinstance(model, Model)
    return model


SAME = {
    "Conv": CONV,
    "Conv of one axis": "(float[1,2,5] x, float[3,2,2] w, float[3] b) => (float[1,3,4] y)"
    " { y = Conv(x, w, b) }",
    "ConvTranspose": "(float[1,2,4,5] x, float[2,3,2,2] w, float[3] b) => (float[1,3,5,6] y)"
    " { y = ConvTranspose(x, w) }",
    "MaxPool": "(float[1,2,4,5] x, float[1] w, float[1] b) => (float[1,2,3,4] y)"
    " { y = MaxPool<kernel_shape=[2,2]>(x) }",
    "InstanceNormalization": "(float[1,2,4,5] x, float[2] w, float[2] b) => (float[1,2,4,5] y)"
    " { y = InstanceNormalization<epsilon=0.5>(x, w, b) }",
    "Resize by scales": "(float[1,2,4,5] x, float[1] w, float[1] b) => (float[1,2,8,15] y)"
    ' <float[4] s = {1,1,2,3}> { y = Resize<mode="linear">(x, , s) }',
    "Resize to sizes": "(float[1,2,4,5] x, float[1] w, float[1] b) => (float[1,2,8,10] y)"
    ' <int64[4] s = {1,2,8,10}> { y = Resize<mode="linear">(x, , , s) }',
}


@pytest.mark.parametrize("name", SAME)
def test_a_call_computes_what_the_operator_does(name: str) -> None:
    before, model = parsed(SAME[name]), written(SAME[name])
    assert [node.domain for node in model.main.nodes if node.op_type != "Transpose"] == [DOMAIN]
    after = model.to_proto()
    onnx.checker.check_model(after)
    draw = np.random.default_rng(0)
    feeds = {}
    for value in before.main.inputs:
        shape = [int(str(dim)) for dim in value.shape or ()]
        feeds[value.name] = draw.standard_normal(shape).astype(np.float32)
    expected = Session(before.to_proto()).run(feeds)["y"]
    np.testing.assert_allclose(Session(after).run(feeds)["y"], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (CONV, "Conv"),
        (SAME["Conv of one axis"], "Conv1D"),
        ("(float[1,2,3,4,5] x) => (float[1,2,1,1,1] y) { y = GlobalMaxPool(x) }",
         "GlobalMaxPool3D"),
        (SAME["Resize by scales"], "Resize"),
        (SAME["Resize to sizes"], "ResizeTo"),
    ],
)  # fmt: skip
def test_a_function_has_the_name_of_its_operator_and_of_the_spatial_dims(
    text: str, name: str
) -> None:
    node = made_by(parsed(text), "y")
    model, rank = node.owner.model, named(node.owner, "x").rank or 0
    assert declare(node.owner, node, rank) == name
    assert declare(node.owner, node, rank) == name
    (function,) = model.functions
    assert function.id == (DOMAIN, name, "")
    assert node.owner.opset(DOMAIN) == 1


@pytest.mark.parametrize(("ir", "is_kept"), [(9, False), (10, True)])
def test_a_function_is_marked_to_be_kept_where_metadata_is(ir: int, is_kept: bool) -> None:
    model = parsed(f'<ir_version: {ir}, opset_import: ["" : 19]> g {CONV}')
    declare(model.main, made_by(model, "y"), 4)
    (function,) = model.to_proto().functions
    assert [each.key for each in function.metadata_props] == ([KEEP] if is_kept else [])


def test_a_target_may_have_an_operator_with_channels_last() -> None:
    pool = """(uint8[1,2,4,4] x) => (uint8[1,2,3,3] y)
        { y = MaxPool<kernel_shape=[2,2], storage_order=1>(x) }"""
    model = written(pool, "all")
    (node,) = (each for each in model.main.nodes if each.op_type != "Transpose")
    assert (node.domain, node.op_type) == (MICROSOFT, "NhwcMaxPool")
    assert list(node.attr("kernel_shape")) == [2, 2]
    assert "storage_order" not in node.attributes
    assert not model.functions


def test_the_other_operands_of_such_an_operator_stay() -> None:
    text = """(uint8[1,2,4,4] x, float s, uint8 z, uint8[3,2,1,1] w, float t, uint8 u, float v,
        uint8 q, int32[3] b) => (uint8[1,3,4,4] y) { y = QLinearConv(x, s, z, w, t, u, v, q, b) }"""
    (node,) = (each for each in written(text, "all").main.nodes if each.op_type != "Transpose")
    assert (node.domain, node.op_type, node.attr("channels_last")) == (MICROSOFT, "QLinearConv", 1)
    names = [value and value.name for value in node.inputs[1:]]
    assert names == ["s", "z", "w", "t", "u", "v", "q", "b"]


def test_an_operator_that_has_channels_last_already_stays() -> None:
    text = """(uint8[1,4,4,2] x, float s, uint8 z) => (uint8[1,3,3,2] y) {
        y = com.microsoft.QLinearAveragePool<kernel_shape=[2,2], channels_last=CL>(x,s,z,s,z) }"""
    propagation, standard, _ = found(text.replace("CL", "1"), supports="all")
    assert propagation is standard
    assert has_last(found(text.replace("CL", "0"), supports="all",
                          wanted={"QLinearAveragePool": "NHWC"})[0])  # fmt: skip


def test_an_operator_in_a_standard_order_is_written_by_its_own_rule() -> None:
    text = "(float[1,2,4,4] x) => (float[1,2,4,4] y) { y = LRN<size=1>(x) }"
    propagation, standard, node = found(text)
    swapped = (0, 1, 3, 2)
    assert isinstance(propagation, AxisPropagation)
    assert isinstance(standard, AxisPropagation)
    assert propagation.allows(swapped)
    assert standard.allows(swapped)
    x = named(node.owner, "x")
    propagation.write(Permuted(node, propagation, swapped, lambda op, slot: x))
    assert [each.domain for each in node.owner.nodes] == ["", ""]
    assert not node.owner.model.functions


def test_a_resize_that_a_function_can_be_written_for() -> None:
    for line, opset, expected in (
        ('Resize<mode="linear">(x, , s)', 13, True),
        ('Resize<mode="linear">(x, , s)', 21, True),
        ('Resize<mode="cubic">(x, e, e, z)', 21, True),
        ('Resize<mode="linear">(x, e, s)', 13, True),
        ('Resize<mode="linear">(x, r, s)', 11, False),
        ("Resize(x, , s)", 21, False),
        ('Resize<mode="linear">(x, , s, z)', 21, False),
        ('Resize<mode="linear", coordinate_transformation_mode="tf_crop_and_resize">(x, r, s)', 21,
         False),
        ('Resize<mode="linear", axes=[2,3]>(x, , two)', 21, False),
    ):  # fmt: skip
        text = f"""(float[1,2,3,4] x, float[8] r) => (y) <float[4] s = {{1,1,2,2}},
            float[0] e = {{}}, int64[4] z = {{1,2,6,8}}, float[2] two = {{2,2}}> {{ y = {line} }}"""
        nodes = parsed(text, opset=opset).main.nodes
        node = next(each for each in nodes if each.is_op("Resize"))
        assert _is_plain_resize(node) is expected, (line, opset)


def _is_known(known: set[tuple[str, str]], op_type: str, domain: str, dtype: int | None) -> bool:
    return any(op_type.startswith(name) and domain == home for name, home in known)


def test_the_places_of_kernels_and_vectors() -> None:
    assert KERNEL_SLOT == {"Conv": 1, "ConvInteger": 1, "ConvTranspose": 1, "QLinearConv": 3}
    assert VECTOR_SLOTS == {"Resize": (2, 3)}
    assert CHANNELS_LAST == {"channels_last": 1}


def test_an_operator_is_written_as_the_target_has_it() -> None:
    node = next(node for node in parsed(CONV).main.nodes if node.is_op("Conv"))
    relu = parsed("(float[1,2,4,5] x) => (y) { y = Relu(x) }").main.nodes[0]
    for known, of, expected in (
        ({("Conv", "")}, node, True),
        ({("Conv", DOMAIN)}, node, True),
        (set(), node, False),
        ({("Conv", "other")}, node, False),
        ({("Relu", "")}, relu, False),
    ):
        found = _writer(of, 4, partial(_is_known, known))
        assert (found is not None) is expected, known
