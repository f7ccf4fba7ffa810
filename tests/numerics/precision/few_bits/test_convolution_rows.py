"""Window: its rows times the weight are the results of the Conv."""

from typing import Any

import numpy as np
import pytest

from tests.module_passes.precision.weights import with_weight
from tiered import Model
from tiered.numerics.precision.few_bits.convolution_rows import ConvolutionWindow
from tiered.runtime import run

Array = np.ndarray[Any, Any]
ALL = 1 << 20


def drawn(*shape: int) -> Array:
    numbers: Array = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    return numbers


def window_of(text: str, shape: tuple[int, ...]) -> tuple[ConvolutionWindow | None, Model]:
    model = Model.from_proto(with_weight(text, shape))
    (node,) = model.main.nodes_of("Conv")
    return ConvolutionWindow.of(node, shape), model


@pytest.mark.parametrize(
    ("attributes", "image", "shape"),
    [
        ("", (2, 3, 9), (4, 3, 3)),
        ("", (2, 3, 9, 8), (4, 3, 3, 2)),
        ("strides=[2,3], pads=[1,0,2,1]", (2, 3, 9, 8), (4, 3, 3, 2)),
        ("dilations=[2,1], pads=[2,1,2,1]", (1, 3, 9, 8), (4, 3, 3, 2)),
        ("group=2, pads=[1,1,1,1]", (1, 6, 5, 5), (4, 3, 3, 3)),
        ("group=3", (1, 3, 5, 5), (3, 1, 2, 2)),
        ('auto_pad="VALID"', (1, 3, 5, 4, 3), (2, 3, 2, 2, 2)),
    ],
)
def test_rows_times_the_weight_are_the_results(
    attributes: str, image: tuple[int, ...], shape: tuple[int, ...]
) -> None:
    dims = ",".join(map(str, image))
    inside = f"<{attributes}>" if attributes else ""
    window, model = window_of(f"(float[{dims}] x) => (float y) {{ y = Conv{inside}(x, w) }}", shape)
    assert window is not None
    x, weight = drawn(*image), model.main.value("w")
    assert weight is not None
    assert weight.tensor is not None
    groups = image[1] // shape[1]
    rows = window.rows(x, ALL).reshape(-1, groups, shape[1] * int(np.prod(shape[2:])))
    kernels = weight.tensor.numpy().reshape(groups, shape[0] // groups, -1)
    found = np.einsum("ngk,gmk->ngm", rows, kernels).reshape(len(rows), -1)
    expected = np.moveaxis(run(model.to_proto(), {"x": x})["y"], 1, -1)
    np.testing.assert_allclose(found, expected.reshape(len(rows), -1), rtol=1e-4, atol=1e-5)


def test_some_rows_are_drawn_and_the_same_each_time() -> None:
    window, _ = window_of("(float[1,3,9,9] x) => (float y) { y = Conv(x, w) }", (4, 3, 3, 3))
    assert window is not None
    x = drawn(1, 3, 9, 9)
    some, every = window.rows(x, 5), window.rows(x, ALL)
    assert some.shape == (5, 27)
    assert np.array_equal(some, window.rows(x, 5))
    assert all((row == every).all(1).any() for row in some)


@pytest.mark.parametrize("image", [(0, 3, 9, 9), (1, 3, 2, 9)])
def test_an_image_without_windows_has_no_rows(image: tuple[int, ...]) -> None:
    window, _ = window_of("(float[N,3,H,W] x) => (float y) { y = Conv(x, w) }", (4, 3, 3, 3))
    assert window is not None
    assert window.rows(np.zeros(image, np.float32), ALL).shape == (0, 27)


def test_an_image_of_one_window_has_a_row() -> None:
    window, _ = window_of("(float[N,3,H,W] x) => (float y) { y = Conv(x, w) }", (4, 3, 3, 3))
    assert window is not None
    assert window.rows(np.zeros((1, 3, 3, 3), np.float32), ALL).shape == (1, 27)


def test_a_kernel_without_spatial_axes_has_no_window() -> None:
    assert window_of("(float[1,3] x) => (float y) { y = Conv(x, w) }", (4, 3))[0] is None


def test_pads_that_depend_on_the_image_are_not_known() -> None:
    text = '(float[1,3,9,9] x) => (float y) { y = Conv<auto_pad="SAME_LOWER">(x, w) }'
    assert window_of(text, (4, 3, 3, 3))[0] is None
