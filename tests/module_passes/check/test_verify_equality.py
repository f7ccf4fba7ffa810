import pytest

import tiered
from tests.module_passes.check.test_check_with_fake_data import TEXT, break_negs
from tiered import Model, get_pass
from tiered.support.errors import VerificationError
from tiered.testing import parse

PASS = "verify_equality"


def test_the_same_bits_pass() -> None:
    made = tiered.optimize(parse(TEXT), passes="eliminate_identity,verify-equality")
    assert [node.op_type for node in made.graph.node] == ["Neg", "Exp"]


def test_a_bit_that_differs_is_an_error() -> None:
    model = Model.from_proto(parse(TEXT))
    break_negs(model)
    with pytest.raises(VerificationError, match="allowed: exact"):
        get_pass(PASS)(model)
    near = parse(TEXT.replace("h = Neg(a)", "b = Neg(a) h = Mul(b, s)").replace(
        "{ a", "<float s = {1.0000001}> { a"
    ))  # fmt: skip
    given = Model.from_proto(near)
    given.origin = parse(TEXT)
    get_pass("check_with_fake_data")(given)
    with pytest.raises(VerificationError):
        get_pass(PASS)(given)
