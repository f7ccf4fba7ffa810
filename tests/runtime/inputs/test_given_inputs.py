"""A user's sample: whole, by name, of the declared dtypes and dims, or an error that says so."""

from typing import Any

import numpy as np
import pytest

from tiered.graph import DataType
from tiered.runtime.inputs.given_inputs import check_fits, placed
from tiered.support.errors import UsageError
from tiered.testing import parse

A = np.zeros(2, np.float32)


@pytest.mark.parametrize(
    ("keys", "inputs", "expected"),
    [
        (["x", "z"], ["x", "z"], ["x", "z"]),
        (["#1", "#0"], ["x", "z"], ["z", "x"]),
        (["x.npy", "z.npy"], ["x", "z"], ["x", "z"]),
        (["any.npy"], ["x"], ["x"]),
        (["x", "w"], ["x"], ["x", "w"]),
        (["x", "w.npy"], ["x"], ["x", "w"]),
        ([], [], []),
    ],
)
def test_arrays_find_their_inputs(keys: list[str], inputs: list[str], expected: list[str]) -> None:
    found = placed(dict.fromkeys(keys, A), inputs, "sample", overridable=["w"])
    assert list(found) == expected


@pytest.mark.parametrize(
    ("keys", "because"),
    [
        ([], "the sample is empty; the model takes x, z"),
        (["x"], "the sample lacks the input 'z'; give all inputs of the model"),
        (["w"], "the sample lacks the inputs 'x', 'z'; give all"),
        (["x", "z", "xx"], "the model has no input 'xx'; did you mean 'x'"),
        (["x", "z", "other"], "the model has no input 'other'; it has x, z"),
        (["x", "z", "#2"], "the model has no input '#2'"),
        (["x", "z", "other.npy"], "the model has no input 'other.npy'"),
        (["x", "z", "x1"], "the model has no input 'x1'"),
        (["x", "z", "#z"], "the model has no input '#z'"),
        (["any.npy"], "the model has no input 'any.npy'"),
    ],
)
def test_what_does_not_fit_is_named(keys: list[str], because: str) -> None:
    with pytest.raises(UsageError, match=f"sample: {because}"):
        placed(dict.fromkeys(keys, A), ["x", "z"], "sample", overridable=["w"])


def test_only_the_only_file_may_have_any_name() -> None:
    with pytest.raises(UsageError, match="no input 'any'"):
        placed({"any": A}, ["x"], "sample")
    with pytest.raises(UsageError, match=r"no input 'any\.npy'"):
        placed({"any.npy": A, "w": A}, ["x"], "sample", overridable=["w"])


def test_a_model_without_inputs_has_none() -> None:
    with pytest.raises(UsageError, match="it has none"):
        placed({"x": A}, [], "sample")


def test_some_inputs_may_be_left_out() -> None:
    assert list(placed({"x": A}, ["x", "z"], "sample", may_lack=["z"])) == ["x"]
    assert list(placed({"x": A, "z": A}, ["x", "z"], "sample", may_lack=["z"])) == ["x", "z"]
    with pytest.raises(UsageError, match="lacks the input 'x'"):
        placed({"z": A}, ["x", "z"], "sample", may_lack=["z"])


def checked(declared: str, array: Any) -> None:
    proto = parse(f"({declared} x) => (float[2] y) {{ y = Cast<to = 1>(x) }}")
    check_fits(proto.graph.input, {"x": array}, "sample")


@pytest.mark.parametrize(
    ("declared", "array"),
    [
        ("float[2]", A),
        ("float[N]", A),
        ("float[N,2]", np.zeros((7, 2), np.float32)),
        ("string[2]", np.array(["a", "b"])),
        ("bfloat16[2]", A),
        ("float[2]", A.astype(DataType.BFLOAT16.numpy)),
        ("float[2]", [1.0]),
    ],
)
def test_arrays_of_the_declared_type_fit(declared: str, array: Any) -> None:
    checked(declared, array)


def test_an_input_without_a_dtype_takes_any() -> None:
    proto = parse("(float[2] x) => (float[2] y) { y = Neg(x) }")
    proto.graph.input[0].type.tensor_type.ClearField("elem_type")
    check_fits(proto.graph.input, {"x": np.zeros(3, np.int64)}, "sample")


def test_an_input_without_a_shape_takes_any_rank() -> None:
    proto = parse("(float[2] x) => (float[2] y) { y = Neg(x) }")
    proto.graph.input[0].type.tensor_type.ClearField("shape")
    check_fits(proto.graph.input, {"x": np.zeros((3, 4), np.float32)}, "sample")
    with pytest.raises(UsageError, match="the model takes float32 of any rank"):
        check_fits(proto.graph.input, {"x": np.zeros(3, np.int64)}, "sample")


@pytest.mark.parametrize(
    ("declared", "array", "because"),
    [
        ("float[2]", np.zeros(2, np.float64), r"float64 \[2\]; the model takes float32 \[2\]"),
        ("float[2]", np.zeros(3, np.float32), r"float32 \[3\]; the model takes float32 \[2\]"),
        ("float[N,2]", A, r"float32 \[2\]; the model takes float32 \[N, 2\]"),
        ("float[1]", A, r"float32 \[2\]; the model takes float32 \[1\]"),
        ("float[?,2]", A, r"float32 \[2\]; the model takes float32 \[\?, 2\]"),
        ("int64[2]", np.zeros(2, np.int32), r"int32 \[2\]; the model takes int64 \[2\]"),
    ],
)
def test_another_dtype_or_dim_is_an_error(declared: str, array: Any, because: str) -> None:
    with pytest.raises(UsageError, match=because):
        checked(declared, array)
