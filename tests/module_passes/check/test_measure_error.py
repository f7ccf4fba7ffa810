"""measure_error: what it reports, and which runtime judges."""

from pathlib import Path

import numpy as np
import pytest

from tiered import Model, PassContext, get_pass
from tiered.testing import parse

TEXT = "(float[2,4] x) => (float[2,4] y) { a = Exp(x) y = Softplus(a) }"


def measured(model: Model, *passes: str, **options: object) -> str:
    """Return the remark, after some passes."""
    ctx = PassContext.isolated()
    for name in passes:
        get_pass(name).apply(model, PassContext.isolated())
    before = model.to_proto()
    get_pass("measure_error").with_options(**options).apply(model, ctx)
    assert model.to_proto() == before
    (remark,) = ctx.remarks
    return str(remark).removeprefix("measure_error: ")


@pytest.mark.parametrize(
    ("lower", "judge"),
    [("float_to_half", "onnx.reference"), ("float_to_bfloat16", "onnx.reference")],
)
def test_the_judge_is_named(lower: str, judge: str) -> None:
    found = measured(Model.from_proto(parse(TEXT)), lower)
    assert found.startswith(f"error on 2 generated inputs by {judge}: cosine ")
    assert float(found.rpartition(" ")[2]) > 0


def test_a_model_without_halves_runs_on_onnxruntime() -> None:
    found = measured(Model.from_proto(parse(TEXT)))
    assert found == "error on 2 generated inputs by onnxruntime: cosine 1, relative 0"


def test_what_was_infinite_before_gets_no_note() -> None:
    model = Model.from_proto(parse("(float[1] x) => (float[1] y) { a = Sub(x, x) y = Log(a) }"))
    measured(model, "float_to_half")
    assert not model.notes


def test_overflow_is_an_error_without_limit(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.full((2, 4), 12, np.float32))
    model = Model.from_proto(parse(TEXT.replace("Softplus", "Neg")))
    found = measured(model, "float_to_half", inputs=(str(tmp_path / "x.npy"),))
    assert found == "error on 1 given input by onnx.reference: cosine -1, relative inf"
    (note,) = [each for each in model.notes if "infinite" in each]
    assert note.startswith("'y': NaN or infinite where the original output is finite; keep")


def test_an_interface_in_halves_is_fed_halves() -> None:
    model = Model.from_proto(parse(TEXT))
    get_pass("float_to_half", keep_io_types=False).apply(model)
    assert "cosine 1" in measured(model)


def test_what_is_not_measured() -> None:
    proto = parse("(float[2,4] x) => (float[2,4] y) { y = com.acme.Unknown(x) }")
    proto.opset_import.add(domain="com.acme", version=1)
    assert measured(Model.from_proto(proto)).startswith("error not measured: found no inputs")
    large = parse("(float[4] x) => (float[4] y) <float[4] w = {1,2,3,4}> { y = Mul(x, w) }")
    model = Model.from_proto(large)
    assert measured(model, max_bytes=8) == "error not measured: more than 8 bytes of weights"


def test_the_model_as_it_was_loaded_is_the_expected_one(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones(4, np.float32))
    model = Model.from_proto(
        parse("(float[4] x) => (float[4] y) <float[4] w = {1,2,3,4}> { y = Mul(x, w) }")
    )
    (mul,) = model.main.nodes
    mul.owner.set_input(mul, 1, model.main.constant(np.array([1, 2, 3, 5], np.float32)))
    assert measured(model, inputs=(str(tmp_path / "x.npy"),)).endswith("relative 0.182574")


def test_elements_of_integers_that_differ_are_a_share_without_a_cosine(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([[2049, 1, 3, 4]], np.float32))
    text = "(float[1,4] x) => (int64[1,4] y) { a = Neg(x) y = Cast<to=7>(a) }"
    found = measured(
        Model.from_proto(parse(text)), "float_to_half", inputs=(str(tmp_path / "x.npy"),)
    )
    assert found == "error on 1 given input by onnx.reference: relative 0.25"


def test_onnxruntime_itself_is_named_where_it_is_further_off(tmp_path: Path) -> None:
    """A row that is masked as a whole: it keeps the scores that a half does not absorb."""
    text = (
        "(float[1,4] x, float[1,4] m) => (float[1,4] y) <float k = {-3e38}, float one = {1}> "
        "{ n = Sub(one, m) q = Mul(n, k) a = Add(x, q) y = Softmax(a) }"
    )
    np.savez(
        tmp_path / "in.npz",
        x=np.array([[1, 2, 3, 4]], np.float32),
        m=np.zeros((1, 4), np.float32),
    )
    options = {"inputs": (str(tmp_path / "in.npz"),)}
    found = measured(Model.from_proto(parse(text)), "float_to_half", **options)
    assert ": cosine 1, relative 0; by onnxruntime itself, which rounds less: " in found
