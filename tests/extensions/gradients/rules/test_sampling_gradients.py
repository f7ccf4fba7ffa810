"""Gradients of operators that read at computed coordinates."""

import numpy as np
import pytest

from tests.extensions.gradients.differences import check
from tiered import get_pass
from tiered.extensions.gradients import NoGradient
from tiered.testing import parse


def drawn() -> np.random.Generator:
    """Return numbers that no other test draws from: the order of tests decides nothing."""
    return np.random.default_rng(3)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("aligned", [0, 1])
@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
def test_grid_sample(mode: str, padding: str, aligned: int) -> None:
    check(
        "(double[2,2,3,4] x, double[2,2,3,2] grid) => (double[2,2,2,3] y) "
        f'{{ y = GridSample <mode = "{mode}", padding_mode = "{padding}", '
        f"align_corners = {aligned}> (x, grid) }}",
        low=-1.4, high=1.4, in_float=True, feeds={"grid": _off_kinks(mode, aligned)},
    )  # fmt: skip


def _off_kinks(mode: str, aligned: int) -> np.ndarray:
    """Return coordinates whose elements are 0.2 to 0.8, or 0.1 to 0.4, between two others."""
    random, (low, high) = drawn(), (0.1, 0.4) if mode == "nearest" else (0.2, 0.8)
    part = random.uniform(low, high, (2, 2, 3, 2))
    place, sizes = random.integers(-2, 4, (2, 2, 3, 2)) + part, np.array([4, 3])
    return np.asarray(2 * place / (sizes - 1) - 1 if aligned else (2 * place + 1) / sizes - 1)


def test_a_grid_of_three_axes_with_named_dims() -> None:
    random = drawn()
    place = random.integers(-1, 2, (1, 2, 3, 2, 3)) + random.uniform(0.2, 0.8, (1, 2, 3, 2, 3))
    check(
        "(double[1,C,2,3,D] x, double[1,2,H,2,3] grid) => (double[1,C,2,H,2] y) "
        '{ y = GridSample <mode = "linear"> (x, grid) }',
        feeds={"grid": (2 * place + 1) / np.array([3, 3, 2]) - 1}, in_float=True,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("offset_group", "settings"),
    [(1, ""), (2, "offset_group = 2, group = 2, "), (1, "strides = [2,1], dilations = [1,2], ")],
)
def test_deform_conv(offset_group: int, settings: str) -> None:
    check(
        f"(double[1,2,3,4] x, double[2,{2 if 'group' not in settings else 1},2,2] w, "
        f"double[1,{8 * offset_group},R,Q] o, double[2] b, double[1,{4 * offset_group},R,Q] m) "
        "=> (double[1,2,R,Q] y) "
        f"{{ y = DeformConv <kernel_shape = [2,2], {settings} pads = [0,1,1,0]> (x, w, o, b, m) }}",
        low=0.1, high=0.4, feeds=_windows(offset_group, "strides" in settings), in_float=True,
    )  # fmt: skip


def _windows(offset_group: int, is_strided: bool) -> dict[str, np.ndarray]:
    image, random = (2, 3) if is_strided else (3, 4), drawn()
    return {
        "o": random.uniform(-0.8, -0.2, (1, 8 * offset_group, *image)),
        "m": random.uniform(0.1, 1, (1, 4 * offset_group, *image)),
    }


ROIS = np.array([[0.3, 0.4, 4.1, 3.9], [1.2, 1.1, 5.7, 5.8]])


@pytest.mark.parametrize("transform", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize("mode", ["avg", "max"])
def test_roi_align(mode: str, transform: str) -> None:
    check(
        "(double[2,3,6,6] x, double[2,4] r) => (double[2,3,2,3] y) <int64[2] b = {1,0}> "
        f'{{ y = RoiAlign <mode = "{mode}", sampling_ratio = 2, output_height = 2, '
        f'output_width = 3, coordinate_transformation_mode = "{transform}"> (x, r, b) }}',
        feeds={"r": ROIS, "x": drawn().permutation(216).reshape(2, 3, 6, 6) / 50}, in_float=True,
    )  # fmt: skip


def test_roi_align_needs_a_number_of_points() -> None:
    proto = parse(
        "(float[2,3,6,6] x, float[2,4] r) => (float[2,3,1,1] y) <int64[2] b = {1,0}> "
        "{ y = RoiAlign(x, r, b) }", opset=16,
    )  # fmt: skip
    with pytest.raises(NoGradient, match="sampling_ratio=0"):
        get_pass("gradient", seed="ones")(proto)
