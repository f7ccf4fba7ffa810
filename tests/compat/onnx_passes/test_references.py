"""The reference of a configuration: equal, within a tolerance, or within metrics."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.small import proto
from tiered import Model
from tiered.compat.onnx_passes.configuration import Configuration
from tiered.compat.onnx_passes.references import OutputReference
from tiered.support.errors import UsageError, VerificationError

TEXT = "g (float[2] x) => (float[2] y) { y = Identity(x) }"


def judged(folder: Path, right: Any, actual: Any, text: str = TEXT, **settings: Any) -> None:
    """Hold the output of an Identity against a reference output."""
    np.save(folder / "x.npy", actual)
    np.save(folder / "y.npy", right)
    files = {
        "reference_inputs": (str(folder / "x.npy"),),
        "reference_outputs": (str(folder / "y.npy"),),
    }
    OutputReference(Configuration(**files, **settings), proto(text)).check(proto(text))  # type: ignore[arg-type]  # of any kind


ONE = np.array([1, np.nan], np.float32)
NEAR = np.array([1 + 2.0**-20, np.nan], np.float32)


def test_outputs_are_equal_without_limits(tmp_path: Path) -> None:
    judged(tmp_path, ONE, ONE)
    with pytest.raises(VerificationError, match=r"^y is not as the reference output$"):
        judged(tmp_path, ONE, NEAR)
    judged(tmp_path, np.array([0.0, 1], np.float32), np.array([-0.0, 1], np.float32))


def test_outputs_are_within_a_tolerance(tmp_path: Path) -> None:
    judged(tmp_path, ONE, NEAR, tolerance={"rtol": 2.0**-20, "atol": 0.0})
    judged(tmp_path, ONE, NEAR, tolerance={"rtol": 0.0, "atol": 2.0**-20})
    with pytest.raises(VerificationError):
        judged(tmp_path, ONE, NEAR, tolerance={"rtol": 2.0**-21, "atol": 0.0})


def test_large_integers_are_told_apart(tmp_path: Path) -> None:
    text = TEXT.replace("float", "int64")
    right, other = np.array([2**53, 1]), np.array([2**53 + 1, 1])
    judged(tmp_path, right, right, text)
    with pytest.raises(VerificationError):
        judged(tmp_path, right, other, text)


def test_metrics_take_the_place_of_the_tolerance(tmp_path: Path) -> None:
    right, actual = np.array([1, 2], np.float32), np.array([1, 2.5], np.float32)
    judged(tmp_path, right, actual, metrics={"max_abs_error": (0.0, 0.5)})
    judged(
        tmp_path,
        right,
        actual,
        metrics={"max_abs_error": (0.5, 1)},
        tolerance={"rtol": 0, "atol": 0},
    )
    message = r"max_abs_error is 0.5, and not in \[0, 0.25\]"
    with pytest.raises(VerificationError, match=message):
        judged(tmp_path, right, actual, metrics={"cosine": (-1, 2), "max_abs_error": (0, 0.25)})
    with pytest.raises(VerificationError, match=r"not in \[0.75, 1\]"):
        judged(tmp_path, right, actual, metrics={"max_abs_error": (0.75, 1)})


@pytest.mark.parametrize("right", [np.ones(3, np.float32), np.ones(2), np.ones((1, 2), np.float32)])
def test_another_shape_or_dtype_is_another_output(tmp_path: Path, right: Any) -> None:
    message = r"float32\[2\] instead of " + f"{right.dtype}".replace("[", r"\[")
    with pytest.raises(VerificationError, match=message):
        judged(tmp_path, right, np.ones(2, np.float32), metrics={"cosine": (-1, 2)})


def test_files_are_as_many_as_inputs_and_outputs(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", ONE)
    file = str(tmp_path / "x.npy")
    two = Configuration(reference_inputs=(file, file))
    with pytest.raises(UsageError, match=r"^reference.inp has 2 files for x$"):
        OutputReference(two, proto(TEXT)).check(proto(TEXT))
    only_outputs = Configuration(reference_outputs=(file,))
    with pytest.raises(UsageError, match=r"^reference.inp has 0 files for x$"):
        OutputReference(only_outputs, proto(TEXT)).check(proto(TEXT))
    more = Configuration(reference_inputs=(file,), reference_outputs=(file, file))
    with pytest.raises(UsageError, match=r"^reference.out has 2 files for y$"):
        OutputReference(more, proto(TEXT)).check(proto(TEXT))


def test_without_outputs_those_of_the_original_are_right(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([1, -2], np.float32))
    reference = OutputReference(
        Configuration(reference_inputs=(str(tmp_path / "x.npy"),)), proto(TEXT)
    )
    assert reference.has_arrays
    reference.check(proto(TEXT))
    with pytest.raises(VerificationError, match="y is not as the reference output"):
        reference.check(proto(TEXT.replace("Identity", "Abs")))


def test_without_files_the_models_are_compared_on_inputs_that_are_made() -> None:
    wrong = Model.from_proto(proto(TEXT.replace("Identity", "Neg")))
    right = Model.from_proto(proto("g (float[2] x) => (float[2] y) { a = Neg(x)  y = Neg(a) }"))
    plain = OutputReference(Configuration(), proto(TEXT))
    assert not plain.has_arrays
    plain.check(proto(TEXT.replace("Identity", "Neg")))  # there is nothing to compare with
    settings: list[dict[str, Any]] = [
        {},
        {"tolerance": {"rtol": 1e-5, "atol": 1e-8}},
        {"metrics": {"max_abs_error": (0.0, 1e-6)}},
    ]
    for each in settings:
        verify = OutputReference(Configuration(**each), proto(TEXT)).as_pass()
        assert (verify.name, verify.info.analysis) == ("verify", True)
        verify.apply(right)
        with pytest.raises(VerificationError):
            verify.apply(wrong)
    OutputReference(
        Configuration(metrics={"max_abs_error": (0, 1e9)}), proto(TEXT)
    ).as_pass().apply(wrong)


def test_an_unknown_metric_is_an_error_at_once() -> None:
    with pytest.raises(UsageError, match="no metric 'cosin'"):
        OutputReference(Configuration(metrics={"cosin": (0, 1)}), proto(TEXT))


@pytest.mark.parametrize("content", [b"", b"text", None, b"\x93NUMPY"])
def test_what_is_no_array_is_named(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "x.npy"
    if content is not None:
        file.write_bytes(content)
    reference = OutputReference(Configuration(reference_inputs=(str(file),)), proto(TEXT))
    with pytest.raises(UsageError, match=r"reference: cannot read .*x\.npy"):
        reference.feeds(["x"])


def test_several_arrays_are_no_reference(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=ONE)
    with pytest.raises(UsageError, match=r"x\.npz is no \.npy file of one array"):
        OutputReference(
            Configuration(reference_inputs=(str(tmp_path / "x.npz"),)), proto(TEXT)
        ).feeds(["x"])
