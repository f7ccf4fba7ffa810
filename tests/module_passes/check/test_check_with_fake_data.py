from pathlib import Path

import onnx
import pytest

from tiered import Graph, Model, ModelError, PassContext, function_pass, get_pass
from tiered.support.errors import VerificationError
from tiered.testing import parse

PASS = "check_with_fake_data"
TEXT = "(float[2,3] x) => (float[2,3] y) { a = Identity(x) h = Neg(a) y = Exp(h) }"


@function_pass(opt_level=0)
def break_negs(graph: Graph, ctx: PassContext) -> None:
    """Wrong on purpose."""
    for node in graph.nodes_of("Neg"):
        graph.replace(node, [graph.op.Abs(node.inputs[0])])


def test_a_right_model_passes_with_a_remark() -> None:
    model = Model.from_proto(parse(TEXT))
    with PassContext() as ctx:
        get_pass("eliminate_identity")(model)
        get_pass(PASS)(model)
    assert "outputs are those of the original" in str(ctx.remarks)


def test_a_random_output_is_a_remark_and_no_error() -> None:
    text = (
        "(float[3] x) => (float[3] y, float[3] z) { a = Identity(x)  y = Bernoulli(a)  z = Exp(a) }"
    )
    for made, count in ((text, 2), (text.replace(", float[3] z", "").replace("z = Exp(a)", ""), 1)):
        model = Model.from_proto(parse(made))
        with PassContext() as ctx:
            get_pass("eliminate_identity")(model)
            get_pass(PASS)(model)
            get_pass("verify_equality")(model)
        said = [str(remark) for remark in ctx.remarks if remark.pass_name == PASS]
        assert len(said) == count
        assert "y: not comparable: random" in said[-1]


def test_a_wrong_model_is_an_error_and_stays_as_it_was() -> None:
    model = Model.from_proto(parse(TEXT))
    break_negs(model)
    before = model.to_proto()
    with pytest.raises(VerificationError, match="computes something else"):
        get_pass(PASS)(model)
    assert model.to_proto() == before


def test_the_original_may_be_a_file(tmp_path: Path) -> None:
    path = tmp_path / "right.onnx"
    onnx.save(parse(TEXT), path)
    wrong = parse(TEXT.replace("Neg", "Abs"))
    get_pass(PASS)(wrong)
    with pytest.raises(VerificationError):
        get_pass(PASS, origin_model=str(path))(wrong)


def test_a_tolerance_is_wider_on_request(tmp_path: Path) -> None:
    path = tmp_path / "a.onnx"
    text = "(float[4] x) => (float[4] y) <float s = {{{}}}> {{ y = Mul(x, s) }}"
    onnx.save(parse(text.format("1.0")), path)
    near = parse(text.format("1.01"))
    with pytest.raises(VerificationError):
        get_pass(PASS, origin_model=str(path))(near)
    get_pass("verify-tolerance", origin_model=str(path), rtol=0.1)(near)


def test_a_model_that_was_not_loaded_has_no_original() -> None:
    model = Model.from_proto(parse(TEXT))
    model.origin = None
    with pytest.raises(ModelError, match="was not loaded, so there is no earlier state"):
        get_pass(PASS)(model)
