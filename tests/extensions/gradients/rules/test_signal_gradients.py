"""Gradients of Fourier transforms."""

import numpy as np
import pytest

from tests.extensions.gradients.differences import check, gradients_of

TRANSFORMS = [
    ("2,5,1", "2,5,2", "onesided = 0"),
    ("2,5,2", "2,5,2", "inverse = 0"),
    ("2,5,2", "2,5,2", "inverse = 1"),
    ("2,5,1", "2,3,2", "onesided = 1"),
    ("2,6,1", "2,4,2", "onesided = 1"),
    ("2,4,2", "2,6,1", "onesided = 1, inverse = 1"),
]


@pytest.mark.parametrize(("x", "y", "settings"), TRANSFORMS)
def test_dft(x: str, y: str, settings: str) -> None:
    check(f"(double[{x}] x) => (double[{y}] y) {{ y = DFT <{settings}> (x) }}")


@pytest.mark.parametrize("length", [4, 5, 7])
@pytest.mark.parametrize(("width", "settings"), [
    (1, "onesided = 1"), (2, "inverse = 1"), (2, "onesided = 1, inverse = 1"), (2, "inverse = 0")
])  # fmt: skip
def test_dft_with_a_length(length: int, width: int, settings: str) -> None:
    check(
        f"(double[5,2,{width}] x) => (double[M,N,K] y) <int64 n = {{{length}}}, int64 a = {{0}}> "
        f"{{ y = DFT <{settings}> (x, n, a) }}"
    )


def test_dft_along_an_axis_that_is_an_operand() -> None:
    check(
        "(double[3,4,1] x, int64 a) => (double[M,N,2] y) {"
        ' y = DFT <onesided = 1> (x, "", a) }', feeds={"a": np.array(1)},
    )  # fmt: skip


def test_dft_before_its_axis_was_an_operand() -> None:
    check("(double[4,3,2] x) => (double[4,3,2] y) { y = DFT <axis = 0> (x) }", opset=17)


@pytest.mark.parametrize("operands", ['s, h, "", n', "s, h, w", "s, h, w, n"])
def test_stft(operands: str) -> None:
    window = ", double[4] w" if "w" in operands else ""
    check(
        f"(double[2,11,1] s{window}) => (double[2,N,3,2] y) <int64 h = {{3}}, int64 n = {{4}}> "
        f"{{ y = STFT <onesided = 1> ({operands}) }}"
    )


def test_the_gradient_of_a_transform_is_the_adjoint_matrix() -> None:
    text = "(double[1,4,2] x) => (double[1,4,2] y) { y = DFT(x) }"
    seed = np.array([1, 2j, 3 - 1j, -1])
    parts = np.stack([seed.real, seed.imag], -1)
    found = gradients_of(text, x=np.zeros((1, 4, 2)), seed=parts)["x"]
    matrix = np.exp(-2j * np.pi * np.outer(np.arange(4), np.arange(4)) / 4)
    expected = matrix.conj().T @ seed
    np.testing.assert_allclose(found[0, :, 0] + 1j * found[0, :, 1], expected, atol=1e-12)


@pytest.mark.parametrize("size", [4, 5])
def test_inner_elements_of_a_onesided_inverse_count_twice(size: int) -> None:
    half = size // 2 + 1
    text = f"""(double[1,{half},2] x) => (double[1,{size},1] y) <int64 n = {{{size}}}> {{
        y = DFT <inverse = 1, onesided = 1> (x, n) }}"""
    seed = np.zeros(size)
    seed[0] = size
    found = gradients_of(text, x=np.zeros((1, half, 2)), seed=seed)["x"]
    # y_0 = (x_0 + 2 x_1 + ...) / n: a middle element, of an even length, counts once.
    expected = [1, 2, 1] if size == 4 else [1, 2, 2]
    np.testing.assert_allclose(found[0, :, 0], expected, atol=1e-12)
    np.testing.assert_allclose(found[0, :, 1], 0, atol=1e-12)


@pytest.mark.parametrize(("length", "expected"), [(2, [2, 0, 0]), (3, [3, 0, 0]), (5, [5, 0, 0])])
def test_what_a_length_cuts_off_or_adds_has_no_gradient(length: int, expected: list[float]) -> None:
    text = f"""(double[1,3,1] x) => (double[1,{length},2] y) <int64 n = {{{length}}}> {{
        y = DFT(x, n) }}"""
    seed = np.zeros((length, 2))
    seed[:, 0] = 1
    # The sum of all frequencies is n times the first element.
    found = gradients_of(text, x=np.zeros((1, 3, 1)), seed=seed)["x"]
    np.testing.assert_allclose(found.ravel(), expected, atol=1e-12)


def test_overlapping_frames_add_up() -> None:
    text = """(double[1,5,1] s) => (double[1,2,2,2] y) <int64 h = {2}, double[3] w = {1,2,4}> {
        y = STFT <onesided = 1> (s, h, w) }"""
    seed = np.zeros((2, 2, 2))
    seed[:, 0, 0] = [1, 10]  # the frequency 0 is the sum of the frame, each times the window
    found = gradients_of(text, s=np.zeros((1, 5, 1)), seed=seed)["s"]
    np.testing.assert_allclose(found[:, :, 0], [[1, 2, 4 + 10, 20, 40]], atol=1e-12)


@pytest.mark.parametrize(("onesided", "parts"), [(0, 1), (1, 1), (0, 2)])
def test_whether_a_signal_is_complex_may_be_known_at_run_time_only(
    onesided: int, parts: int
) -> None:
    check(
        "(double[1,6,E] x) => (double[1,N,2] y) <int64 a = {1}> "
        f'{{ y = DFT <onesided = {onesided}> (x, "", a) }}',
        feeds={"x": np.arange(6.0 * parts).reshape(1, 6, parts) ** 2},
    )
