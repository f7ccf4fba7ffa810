"""Gradients of convolutions where pads follow from other settings, or sizes are not known."""

import pytest

from tests.extensions.gradients.test_rules import check
from tiered import get_pass
from tiered.support.errors import TieredError
from tiered.testing import parse

FOUR = "N,C,P,Q"


@pytest.mark.parametrize(
    "settings",
    [
        'auto_pad = "SAME_LOWER", strides = [2,2]',
        'auto_pad = "VALID", strides = [2,1]',
        'auto_pad = "SAME_UPPER", dilations = [2,1]',
        "strides = [3,3]",
    ],
)
def test_pads_of_a_convolution_follow_from_auto_pad(settings: str) -> None:
    check(
        f"(double[1,2,5,6] x, double[3,2,2,2] w) => (double[{FOUR}] y) "
        f"{{ y = Conv <{settings}> (x, w) }}"
    )


@pytest.mark.parametrize(
    "settings",
    [
        'auto_pad = "SAME_UPPER", strides = [2,2]',
        'auto_pad = "SAME_LOWER", strides = [2,2]',
        'auto_pad = "VALID", strides = [2,2]',
        "output_shape = [6,7], strides = [2,2]",
        "output_shape = [8,8], strides = [2,2], output_padding = [1,1]",
    ],
)
def test_pads_of_a_transposed_convolution_follow_from_its_result(settings: str) -> None:
    check(
        f"(float[1,2,3,3] x, float[2,2,3,3] w) => (float[{FOUR}] y) "
        f"{{ y = ConvTranspose <{settings}> (x, w) }}",
        in_float=True,
    )


@pytest.mark.parametrize(
    ("inputs", "call", "because"),
    [
        (
            "float[1,2,H,W] x, float[3,2,2,2] w",
            'Conv <auto_pad = "SAME_UPPER", strides = [2,2]> (x, w)',
            "auto_pad needs known spatial dims",
        ),
        (
            "float[1,2,H,W] x, float[2,3,2,2] w",
            'ConvTranspose <auto_pad = "SAME_UPPER", strides = [2,2]> (x, w)',
            "auto_pad",
        ),
        (
            "float[1,2,4,4] x, float[3,2,K,K] w",
            "Conv (x, w)",
            "the shape of its weight is unknown",
        ),
    ],
)
def test_sizes_that_pads_need_are_asked_for(inputs: str, call: str, because: str) -> None:
    model = parse(f"({inputs}) => (float[{FOUR}] y) {{ y = {call} }}")
    with pytest.raises(TieredError, match=because):
        get_pass("gradient", seed="input")(model)
