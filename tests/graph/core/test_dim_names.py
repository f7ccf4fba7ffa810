"""Which words and numbers may be a dim in an option."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.small import parsed
from tiered import UsageError, memory_plan
from tiered.graph.core.dim_names import check_sizes, is_dim, is_dim_name
from tiered.runtime.inputs.make import make_inputs


def test_names_of_dims_are_words_that_are_no_constants() -> None:
    for text, expected in {
        "batch": True, "N": True, "seq.len": True, "seq-len": True, "_x2": True, "größe": True,
        "2": False, "2x": False, "": False, "a b": False, "a.": False, "-a": False, "a+b": False,
        "None": False, "null": False, "NaN": False, "inf": False, "True": False, "false": False,
    }.items():  # fmt: skip
        assert is_dim_name(text) is expected, text


def test_a_dim_is_a_name_or_an_integer_other_than_0() -> None:
    for dim, expected in (
        ("batch", True), ("true", False), (1, True), (-1, True), (7, True), (0, False),
        (True, False), (2.0, False), (None, False),
    ):  # fmt: skip
        assert is_dim(dim) is expected, dim


def test_a_size_is_an_integer_that_is_not_negative() -> None:
    check_sizes({"a": 0, "b": 1, "c": np.int64(3)})
    model = parsed(
        '<ir_version: 10, opset_import: ["": 21]> g (float[N] x) => (float[N] y) { y = Neg(x) }'
    )
    asks: list[Callable[[dict[str, Any]], object]] = [
        check_sizes,
        lambda dims: make_inputs(model.to_proto(), dims=dims),
        lambda dims: memory_plan(model, dims=dims),
    ]
    for size in (-1, True, 2.0, "2", None):
        for ask in asks:
            with pytest.raises(UsageError) as raised:
                ask({"N": size})
            assert str(raised.value) == f"the dim 'N' is to be {size!r}; expected a size: 0 or more"
