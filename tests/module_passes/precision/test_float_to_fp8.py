"""float_to_fp8: the QDQ form of data and weights, in all formats, and what stays."""

from pathlib import Path

import numpy as np
import pytest

from tests.module_passes.precision.weights import apply, noise_of, with_weight
from tiered import DataType, Model
from tiered.support.errors import UsageError
from tiered.testing import parse

MATMUL = "(float[N,64] x) => (float[N,32] y) { y = MatMul(x, w) }"
TWO = "(float[4,4] a, float[4,4] b) => (float[4,4] y) { y = MatMul(a, b) }"


def scales_of(model: Model) -> list[float]:
    """Return the scales of the values that are quantised."""
    found = [node.inputs[1] for node in model.main.nodes_of("QuantizeLinear")]
    return [float(value.const) for value in found if value is not None and value.const is not None]


@pytest.mark.parametrize(
    ("format", "dtype", "largest"),
    [
        *(("E4M3FN", 17, 448.0), ("E4M3FNUZ", 18, 240.0), ("F143", 18, 240.0)),
        *(("E5M2", 19, 57344.0), ("E5M2FNUZ", 20, 57344.0), ("F152", 20, 57344.0)),
    ],
)
def test_formats(tmp_path: Path, format: str, dtype: int, largest: float) -> None:
    x = np.random.default_rng(2).standard_normal((4, 64)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    proto = with_weight(MATMUL, (64, 32))
    options: dict[str, object] = {"format": format, "weight_format": format}
    options["inputs"] = (str(tmp_path / "x.npy"),)
    model, found = apply("float_to_fp8", proto, options)
    (code,) = model.main.nodes_of("QuantizeLinear")
    assert code.output.dtype == dtype
    assert code.attr("saturate") == 1
    assert scales_of(model) == [pytest.approx(float(np.abs(x).max()) / largest)]
    assert len(model.main.nodes_of("DequantizeLinear")) == 2
    assert any(f"1 value quantised to {DataType(dtype).name.lower()}" in f for f in found)
    assert 0 < noise_of(proto, model) < 0.15


def test_scales_are_powers_of_two_if_asked() -> None:
    options: dict[str, object] = {"format": "F143", "exponent": -3, "weight_exponent": -5}
    model, _ = apply("float_to_fp8", with_weight(MATMUL, (64, 32)), options)
    assert scales_of(model) == [0.125]
    scales = [node.inputs[1] for node in model.main.nodes_of("DequantizeLinear")]
    numbers = {n for s in scales if s is not None and s.const is not None for n in s.const.flat}
    assert numbers == {2.0**-3, 2.0**-5}


BY_NODE = """(float[N,64] x) => (float[N,32] y, float[N,32] z)
    { [enc_a] y = MatMul(x, w)  [enc_b] z = MatMul(x, w) }"""


def test_exponents_differ_by_node() -> None:
    options: dict[str, object] = {"exponent": -1, "exponents": ("enc_a=-3", "*_b=-4", "enc_*=0")}
    options["weight_exponent"] = -5
    model, _ = apply("float_to_fp8", with_weight(BY_NODE, (64, 32)), options)
    assert sorted(scales_of(model)) == [2.0**-4, 2.0**-3]
    assert len(model.main.nodes_of("DequantizeLinear")) == 3


def test_a_weight_has_one_exponent() -> None:
    options: dict[str, object] = {"weight_exponents": ("enc_a=-3", "enc_b=-4")}
    for name in ("float_to_fp8", "fp8_weight"):
        if name == "fp8_weight":
            options = {"exponents": options["weight_exponents"]}
        model, found = apply(name, with_weight(BY_NODE, (64, 32)), options)
        assert all(
            node.inputs[1] is model.main.value("w") for node in model.main.nodes_of("MatMul")
        )
        assert any("its readers have different exponents" in each for each in found), found


def test_a_name_that_no_node_has_is_an_error() -> None:
    for name in ("float_to_fp8", "fp8_weight"):
        with pytest.raises(UsageError, match=r"no node of .* has the name 'other'"):
            apply(name, parse(TWO), {"exponents": ("other=1",)})


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"exponents": ("a",)}, "exponent 'a': expected NODE=INTEGER"),
        ({"exponents": ("=3",)}, "exponent '=3': expected NODE=INTEGER"),
        ({"weight_exponents": ("a=x",)}, "exponent 'a=x': expected NODE=INTEGER"),
        ({"weight_exponent": 2000}, "exponent 2000: expected -126 to 127"),
    ],
)
def test_exponents_that_are_none(options: dict[str, object], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        apply("float_to_fp8", parse(TWO), options)


def test_a_value_has_one_pair_for_all_its_readers() -> None:
    text = "(float[4,4] a) => (float[4,4] y, float[4,4] z) { y = MatMul(a, a) z = Gemm(a, y) }"
    model, _ = apply("float_to_fp8", parse(text))
    assert len(model.main.nodes_of("QuantizeLinear")) == 2  # a and y


def test_numbers_beyond_the_scale_saturate() -> None:
    model, _ = apply("float_to_fp8", parse(TWO), {"exponent": -9})
    assert noise_of(parse(TWO), model) > 0.1  # and no NaN, which the norm would show


def test_zeros_have_the_scale_one() -> None:
    text = TWO.replace("y = MatMul(a, b)", "z = Sub(a, a) y = MatMul(z, b)")
    model, _ = apply("float_to_fp8", parse(text))
    assert 1.0 in scales_of(model)


def test_halves_have_scales_of_halves() -> None:
    model, _ = apply("float_to_fp8", parse(TWO.replace("float", "float16")))
    assert {node.output.dtype for node in model.main.nodes_of("DequantizeLinear")} == {10}


@pytest.mark.parametrize(
    ("text", "options", "because"),
    [
        (TWO, {"skip_op_types": ("MatMul",)}, "MatMul is skipped"),
        (TWO, {"skip_nodes": ("*",)}, "the node is skipped"),
        (TWO.replace("float", "double"), {}, "the operand is neither float nor float16"),
    ],
)
def test_what_stays(text: str, options: dict[str, object], because: str) -> None:
    model, found = apply("float_to_fp8", parse(text), options)
    assert not model.main.nodes_of("QuantizeLinear")
    assert any(because in each for each in found)


BODY = (
    "(float[4,4] a, bool c) => (float[4,4] y) { y = If(c) <"
    "then_branch = g () => (float[4,4] t) { s = Exp(a) t = MatMul(s, s) }, "
    "else_branch = h () => (float[4,4] e) { e = Neg(a) }> }"
)


def test_bodies_need_an_exponent() -> None:
    _, found = apply("float_to_fp8", parse(BODY))
    assert any("in a body, where ranges are not measured" in each for each in found)
    model, _ = apply("float_to_fp8", parse(BODY), {"exponent": -4})
    (branch,) = model.main.nodes_of("If")
    assert len(branch.bodies[0].nodes_of("QuantizeLinear")) == 1


def test_an_older_opset_has_no_float8() -> None:
    _, found = apply("float_to_fp8", parse(TWO, opset=18))
    assert any("float8 needs opset 19, the model has 18" in each for each in found)


def test_the_weight_of_a_gather_stays() -> None:
    text = "(int64[N] i) => (float[N,32] y) { y = Gather(w, i) }"
    _, found = apply("float_to_fp8", with_weight(text, (64, 32)))
    assert any("Gather multiplies nothing" in each for each in found), found
