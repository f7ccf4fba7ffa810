import pytest

from tiered import Model, UsageError, get_pass
from tiered.support.errors import VerificationError
from tiered.testing import parse

PASS = "verify_metric"
TEXT = "(float[2,3] x) => (float[2,3] y) <float s = {{{}}}> {{ y = Mul(x, s) }}"


def scaled() -> Model:
    model = Model.from_proto(parse(TEXT.format(1.5)))
    model.origin = parse(TEXT.format(1.0))
    return model


def test_a_metric_in_its_range_passes() -> None:
    for options in ({}, {"metric": "argmax_agreement", "accepted": [1, 1]}):
        get_pass(PASS, **options)(scaled())


def test_a_metric_outside_of_its_range_is_an_error() -> None:
    with pytest.raises(VerificationError, match="max_abs_error"):
        get_pass(PASS, metric="max_abs_error", accepted=[0.0, 1e-3])(scaled())


def test_an_unknown_metric_is_an_error() -> None:
    with pytest.raises(UsageError, match="no metric 'cosin'; did you mean 'cosine'"):
        get_pass(PASS, metric="cosin")(scaled())
