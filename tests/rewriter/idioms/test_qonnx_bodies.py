"""The bodies of QONNX's operators compute what numpy does, and the nodes that have none say why."""

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from tests import qonnx
from tests.qonnx import ROUNDINGS, SPECIAL, Array, floats
from tests.small import made_by, parsed
from tiered.rewriter.idioms.qonnx_bodies import (
    BodyForm,
    attribute,
    channel_axis,
    form_of,
    rounding_of,
)

X = floats([*np.arange(-30, 31) / 4, *SPECIAL])
PLAIN = [mode for mode in ROUNDINGS if mode not in ("HALF_EVEN", "ROUND_TO_ZERO")]
STOCK = """float s = {0.5}, float z = {0}, float b = {4}, float b2 = {2}, float[1,1] one = {3},
    float[2] two = {3,4}, float none = {0}, float part = {2.5}, float endless = {inf},
    float nan = {nan}, float low = {-1}, float big = {2}, float odd = {0.7}, float near = {1.05},
    float minus = {-0.5}, float[2,3] t = {1,2,3,4,5,6}"""


def computed(form: BodyForm, *operands: Array, **attributes: int | float | str) -> Array:
    """Return what the body of a form computes."""
    function = form.function("d", form.op_type, 17)
    assert (function.domain, function.name) == ("d", form.op_type)
    names = list(function.input)
    feeds = dict(zip(names, operands, strict=True))
    with np.errstate(all="ignore"):
        (found,) = ReferenceEvaluator(function).run(None, feeds, attributes=attributes)
    return np.asarray(found)


@pytest.mark.parametrize("mode", PLAIN)
@pytest.mark.parametrize(("signed", "narrow"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_quant_rounds_clips_and_scales(mode: str, signed: int, narrow: int) -> None:
    for bits, zero in ((1, 0), (4, 0.25)):
        given = (floats(0.5), floats(zero), floats(bits))
        found = computed(BodyForm("Quant", 4, mode), X, *given, signed=signed, narrow=narrow)
        with np.errstate(all="ignore"):
            expected = qonnx.quant(X, floats(0.5), floats(zero), bits, signed, narrow, mode)
        assert qonnx.equal(found, expected)


def test_bipolar_quant_has_two_values() -> None:
    found = computed(BodyForm("BipolarQuant", 2, ""), X, floats(0.5))
    assert qonnx.same_bits(found, qonnx.bipolar(X, floats(0.5)))
    assert set(found.tolist()) == {-0.5, 0.5}


@pytest.mark.parametrize("mode", PLAIN)
def test_trunc_drops_bits(mode: str) -> None:
    given = (floats(0.5), floats(0.25))
    found = computed(BodyForm("Trunc", 5, mode), X, *given, floats(6), floats(4))
    with np.errstate(all="ignore"):
        expected = qonnx.trunc_by_bits(X, floats(0.5), np.float32(0.25), 6, 4, mode)
    assert qonnx.equal(found, expected)


@pytest.mark.parametrize("mode", ["FLOOR", "UP"])
@pytest.mark.parametrize(("signed", "narrow"), [(0, 1), (1, 0), (1, 1)])
def test_the_newer_trunc_has_two_scales(mode: str, signed: int, narrow: int) -> None:
    given = (floats(0.5), floats(1), floats(6), floats(2), floats(0), floats(3))
    form = BodyForm("Trunc", 7, mode)
    found = computed(form, X, *given, signed=signed, narrow=narrow)
    with np.errstate(all="ignore"):
        expected = qonnx.trunc_by_scale(
            X, floats(0.5), np.float32(1), floats(2), 3, signed, narrow, mode
        )
    assert qonnx.equal(found, expected)


@pytest.mark.parametrize(
    ("layout", "dims", "axis"),
    [
        ("NCHW", (1, 2, 3, 2), 1), ("NCHW", (3, 2), 1), ("NCHW", (1, 3, 2), 2),
        ("NHWC", (1, 3, 2, 2), 3), ("NHWC", (3, 2), 1),
    ],
)  # fmt: skip
def test_thresholds_are_counted_for_each_channel(
    layout: str, dims: tuple[int, ...], axis: int
) -> None:
    x = np.arange(np.prod(dims), dtype=np.float32).reshape(dims) - 2
    thresholds = floats([[0, 1, 5], [-1, 2, 9]])
    form = BodyForm("MultiThreshold", 2, layout)
    found = computed(form, x, thresholds, out_scale=0.3, out_bias=-1.5)
    assert qonnx.same_bits(found, qonnx.multi_threshold(x, thresholds, 0.3, -1.5, axis))
    assert channel_axis(layout, len(dims)) == axis


def test_a_form_has_a_name_of_its_own() -> None:
    assert BodyForm("Trunc", 5, "FLOOR").name == "Trunc_5_FLOOR"
    assert BodyForm("Quant", 4, "ROUND").name == "Quant_ROUND"
    assert BodyForm("BipolarQuant", 2, "").name == "BipolarQuant"


def test_a_body_declares_the_attributes_of_its_operator() -> None:
    made = BodyForm("Quant", 4, "CEIL").function("dd", "Mine", 13)
    assert list(made.attribute) == ["signed", "narrow", "rounding_mode"]
    assert [(each.domain, each.version) for each in made.opset_import] == [("", 13)]
    assert made.name == "Mine"
    assert "Sign" not in {node.op_type for node in made.node}


# --- nodes ----------------------------------------------------------------------------------------


def found(call: str, inputs: str = "float[1,2] x, float s1", out: str = "y") -> object:
    """Return the form of a node, or why it has none, as text."""
    model = parsed(
        f"""<ir_version: 8, opset_import: ["": 17, "qonnx.custom_op.general": 1]>
        g ({inputs}) => (float[?,?] y) <{STOCK}> {{ {out} = qonnx.custom_op.general.{call} }}"""
    )
    form = form_of(made_by(model, "y"))
    return form if isinstance(form, BodyForm) else str(form)


@pytest.mark.parametrize(
    ("call", "form"),
    [
        ("Quant(x, s, z, b)", ("Quant", 4, "ROUND")),
        ('Quant<rounding_mode="half_even">(x, s, z, b)', ("Quant", 4, "ROUND")),
        ('Quant<rounding_mode="ROUND_TO_ZERO">(x, s, z, one)', ("Quant", 4, "DOWN")),
        ('Quant<rounding_mode="ceil">(x, s, z, s1)', ("Quant", 4, "CEIL")),
        ("BipolarQuant(x, s)", ("BipolarQuant", 2, "")),
        ("Trunc(x, s, z, b, b2)", ("Trunc", 5, "FLOOR")),
        ("Trunc(x, s, z, b, big, z, b2)", ("Trunc", 7, "FLOOR")),
        ("Trunc(x, s, z, b, s, z, b2)", ("Trunc", 7, "FLOOR")),
        ("Trunc(x, big, z, b, near, z, b2)", ("Trunc", 7, "FLOOR")),
        ("MultiThreshold(x, t)", ("MultiThreshold", 2, "NCHW")),
        ('MultiThreshold<data_layout="NHWC">(x, t)', ("MultiThreshold", 2, "NHWC")),
    ],
)
def test_nodes_with_a_body(call: str, form: tuple[str, int, str]) -> None:
    assert found(call) == BodyForm(*form)


@pytest.mark.parametrize(
    ("call", "because"),
    [
        ("Quant(x, s, z)", "Quant does not take 3 operands"),
        ("Trunc(x, s, z, b, b2, s)", "Trunc does not take 6 operands"),
        ("Conv(x, s)", "Conv does not take 2 operands"),
        ("Quant(x)", "Quant does not take 1 operand"),
        ("Quant(x, , z, b)", "an operand is not float32"),
        ("Quant(x, s, z, two)", "the bit width is not one number"),
        ("Quant(x, s, z, none)", "the bit width is 0.0"),
        ("Quant(x, s, z, low)", "the bit width is -1.0"),
        ("Quant(x, s, z, part)", "the bit width is 2.5"),
        ("Quant(x, s, z, endless)", "the bit width is inf"),
        ("Quant(x, s, z, nan)", "the bit width is nan"),
        ("Trunc(x, s, z, part, b2)", "the bit width is 2.5"),
        ("Trunc(x, s, z, b, part)", "the bit width is 2.5"),
        ("Trunc(x, s, z, b, big, z, part)", "the bit width is 2.5"),
        ('Quant<rounding_mode="NEAR">(x, s, z, b)', "the rounding mode NEAR is not known"),
        ("Trunc(x, s1, z, b, big, z, b2)", "a scale is not constant"),
        ("Trunc(x, s, z, b, s1, z, b2)", "a scale is not constant"),
        ("Trunc(x, s, z, b, odd, z, b2)", "the scales differ by no power of two"),
        ("Trunc(x, s, z, b, minus, z, b2)", "the scales differ by no power of two"),
        ("Trunc(x, s, z, b, none, z, b2)", "the scales differ by no power of two"),
        ('MultiThreshold<data_layout="NWC">(x, t)', "the data layout 'NWC' is not known"),
    ],
)
def test_nodes_without_a_body_say_why(call: str, because: str) -> None:
    assert found(call) == because


def test_the_first_reason_counts() -> None:
    call = 'Quant<rounding_mode="NEAR">(x, s, z, part)'
    assert found(call) == "the bit width is 2.5"


@pytest.mark.parametrize(
    ("inputs", "layout", "because"),
    [
        ("float[1,2,3] x", "NHWC", "NHWC data has rank 3"),
        ("float x", "NHWC", "NHWC data has rank 0"),
        ("float x", "NCHW", "the data has no channels"),
        ("float[] x", "NHWC", "the data has no channels"),
    ],
)
def test_data_has_an_axis_of_channels(inputs: str, layout: str, because: str) -> None:
    text = found(f'MultiThreshold<data_layout="{layout}">(x, t)', inputs)
    if inputs == "float[] x":  # a rank that is not known may be right
        assert text == BodyForm("MultiThreshold", 2, layout)
    else:
        assert text == because


def test_a_node_with_several_results_or_of_other_numbers_has_no_body() -> None:
    assert found("Quant(x, s, z, b)", out="y, more") == "Quant does not take 4 operands"
    assert found("BipolarQuant(x, s)", "double[1,2] x") == "an operand is not float32"


def test_attributes_have_defaults() -> None:
    model = parsed(
        f"""<ir_version: 8, opset_import: ["": 17, "onnx.brevitas": 1]>
        g (float[1,2] x) => (float[1,2] y, float[1,2] w) <{STOCK}> {{
        y = onnx.brevitas.Trunc<signed=0, rounding_mode="half_even">(x, s, z, b, b2)
        w = onnx.brevitas.Quant(x, s, z, b) }}"""
    )
    trunc, quant = made_by(model, "y"), made_by(model, "w")
    assert attribute(trunc, "signed") == "0"
    assert attribute(trunc, "narrow") == "0"
    assert attribute(quant, "narrow") == "1"
    assert rounding_of(trunc) == "ROUND"
    assert rounding_of(quant) == "ROUND"


def test_channels_of_data_of_unknown_rank_are_not_known() -> None:
    assert channel_axis("NCHW", None) is None
    assert channel_axis("NHWC", 4) == 3
    assert channel_axis("NCHW", 4) == 1
    assert channel_axis("NCHW", 5) == 4
