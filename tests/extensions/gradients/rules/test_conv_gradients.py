"""Gradients of convolutions where pads follow from other settings, or sizes are not known."""

import numpy as np
import pytest

from tests.extensions.gradients.differences import check
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


CONVOLUTIONS = {
    "plain": ("2,3,5,6", "4,3,3,3", "kernel_shape = [3,3]"),
    "strides": ("2,3,6,7", "4,3,3,2", "strides = [2,3], pads = [1,0,0,1]"),
    "dilations": ("1,2,8,8", "3,2,2,3", "dilations = [2,2], pads = [1,2,1,0], strides = [2,1]"),
    "depthwise": ("2,3,5,5", "3,1,3,3", "group = 3, pads = [1,1,1,1]"),
    "one axis": ("2,3,8", "4,3,3", "strides = [2]"),
    "three axes": ("1,2,4,4,4", "2,2,2,2,2", "strides = [2,1,1]"),
    "same": ("1,2,5,6", "2,2,3,3", 'auto_pad = "SAME_UPPER", strides = [2,2]'),
    "named batch": ("N,2,5,6", "2,2,3,3", "strides = [2,2]"),
    "named image": ("N,2,H,W", "2,2,3,3", "strides = [2,2], pads = [1,1,1,1]"),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name: str) -> None:
    x, w, settings = CONVOLUTIONS[name]
    y = ",".join("NCPQR"[: x.count(",") + 1])
    feeds = {"x": np.random.default_rng(0).uniform(-1, 1, (2, 2, 6, 5))} if "H" in x else {}
    check(
        f"(double[{x}] x, double[{w}] w, double[{w[0]}] b) => (double[{y}] y) "
        f"{{ y = Conv <{settings}> (x, w, b) }}",
        feeds=feeds,
    )


def test_a_grouped_convolution() -> None:
    check(
        "(double[2,4,5,5] x, double[6,2,3,3] w) => (double[N,C,P,Q] y) "
        "{ y = Conv <group = 2, pads = [1,1,1,1], strides = [2,2]> (x, w) }",
        in_float=True,
    )


@pytest.mark.parametrize(
    ("x", "w", "settings"),
    [("2,3,4,4", "3,2,3,3", "strides = [2,2], pads = [1,1,1,1]"),
     ("1,4,3,3", "4,2,3,3", "strides = [2,2], output_padding = [1,1], group = 2")],
)  # fmt: skip
def test_transposed_convolutions(x: str, w: str, settings: str) -> None:
    check(
        f"(double[{x}] x, double[{w}] w) => (double[N,C,P,Q] y) "
        f"{{ y = ConvTranspose <{settings}> (x, w) }}",
        in_float=True,
    )
