"""The values of `--to`: which go together, the pass of each, its options and its promise."""

import math
from typing import Any

import numpy as np
import pytest

from tiered import UsageError, get_pass
from tiered.extensions.preparation.precisions import (
    PRECISIONS,
    PROCESSORS,
    PROMISED,
    PrecisionOptions,
    budget_promise,
    conversion_promise,
    is_lossy,
    is_searched,
    ordered,
    precision_pass,
    reads_inputs,
    takes_order,
)
from tiered.numerics.precision.budget import budget_of
from tiered.support.numerics import FEW_BITS, Numerics

BUDGET = "cosine>=0.999"


def test_the_order_of_conversions_does_not_depend_on_how_they_are_given() -> None:
    assert ordered(["fp16", "int8", "int32"]) == ("int32", "int8", "fp16")
    assert ordered(["fp16,int32", "fp16"]) == ("int32", "fp16")
    assert all(ordered([name]) == (name,) for name in PRECISIONS)


@pytest.mark.parametrize(
    "pair", [("mixed", "fp16"), ("int8", "int8-dynamic"), ("fp8", "int4-weights")]
)
def test_two_of_a_kind_are_refused(pair: tuple[str, str]) -> None:
    with pytest.raises(UsageError, match="use one of them"):
        ordered(pair)


def test_all_values_are_known() -> None:
    assert PRECISIONS == (
        "int32", "int8", "int8-dynamic", "fp8", "int8-weights", "int4-weights", "fp16", "bf16",
        "mixed",
    )  # fmt: skip
    assert PROCESSORS == ("avx2", "vnni", "any")
    assert ordered([]) == ()
    assert ordered([" fp16 , int8"]) == ("int8", "fp16")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("fp15", r"--to takes int32, .*mixed, not 'fp15'; did you mean 'fp16'"),
        ("", "not ''"),
        ("double", "not 'double'"),
    ],
)
def test_an_unknown_value_is_an_error_with_a_hint(name: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        ordered(["int32", name])


@pytest.mark.parametrize(
    ("pair", "why"),
    [
        (("int8", "fp8"), "--to int8 and fp8 both quantise, and a quantised model stays as it is"),
        (("bf16", "fp16"), "--to fp16 and bf16 are two types to compute in; use one of them"),
    ],
)
def test_two_of_a_kind_are_refused_with_the_reason(pair: tuple[str, str], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        ordered(pair)


FACTS = {
    # value: lossy, searched, reads inputs, takes an order; then the last three with a budget.
    "int32": (False, False, False, False, False, False, False),
    "int8": (True, False, True, False, False, True, True),
    "int8-dynamic": (True, False, False, False, False, True, False),
    "fp8": (True, False, True, False, False, True, False),
    "int8-weights": (True, False, False, False, False, True, False),
    "int4-weights": (True, False, True, False, False, True, False),
    "fp16": (True, False, False, False, True, True, True),
    "bf16": (True, False, False, False, True, True, True),
    "mixed": (True, True, True, False, True, True, True),
}


@pytest.mark.parametrize("name", PRECISIONS)
def test_what_each_value_needs(name: str) -> None:
    found = (
        is_lossy(name), is_searched(name, ""), reads_inputs(name, ""), takes_order(name, ""),
        is_searched(name, BUDGET), reads_inputs(name, BUDGET), takes_order(name, BUDGET),
    )  # fmt: skip
    assert found == FACTS[name]


def test_no_value_is_no_loss() -> None:
    assert not is_lossy("")


PASSES: dict[str, tuple[dict[str, Any], str, dict[str, Any]]] = {
    "int32": ({}, "int64_to_int32", {}),
    "int32 with bounds": ({"bounds": ["ids=0:9"]}, "int64_to_int32", {"bounds": ["ids=0:9"]}),
    "int8": ({}, "quantize", {}),
    "int8 on vnni": ({"processor": "vnni"}, "quantize", {"processor": "vnni"}),
    "int8 by error": ({"budget": BUDGET, "order": "error"}, "quantize",
                      {"budget": BUDGET, "order": "error"}),
    "int8-dynamic": ({}, "quantize_dynamic", {}),
    "int8-dynamic on avx2": ({"processor": "avx2"}, "quantize_dynamic", {"processor": "avx2"}),
    "fp8": ({}, "float_to_fp8", {}),
    "int8-weights": ({}, "weights_to_int8", {}),
    "int4-weights": ({}, "weights_to_int4", {}),
    "fp16": ({"measures": False}, "float_to_half", {}),
    "fp16 measured": ({"inputs": ["s.npz"]}, "float_to_half",
                      {"measure": True, "inputs": ["s.npz"]}),
    "fp16 on vnni": ({"processor": "vnni", "measures": False}, "float_to_half", {}),
    "fp16 unmeasured": ({"inputs": ["s.npz"], "measures": False}, "float_to_half", {}),
    "bf16": ({}, "float_to_bfloat16", {}),
    "mixed": ({}, "float_to_mixed", {"to": "fp16"}),
    "fp16 with a budget": ({"budget": BUDGET}, "float_to_mixed", {"budget": BUDGET, "to": "fp16"}),
    "bf16 with a budget": ({"budget": BUDGET}, "float_to_mixed", {"budget": BUDGET, "to": "bf16"}),
    "bf16 by error": ({"budget": BUDGET, "order": "error"}, "float_to_mixed",
                      {"budget": BUDGET, "order": "error", "to": "bf16"}),
    "bf16 without order": ({"order": "error"}, "float_to_bfloat16", {}),
    "bf16 of others": (
        {"keep_ops": ["Erf,Exp", "Log"], "keep_nodes": ["a*"], "keep_io": False},
        "float_to_bfloat16",
        {"keep_io_types": False, "skip_nodes": ["a*"], "skip_op_types": ["Erf", "Exp", "Log"]},
    ),
    "int8 of inputs": ({"inputs": ["s.npz"]}, "quantize", {"inputs": ["s.npz"]}),
    "int8-weights of inputs": ({"inputs": ["s.npz"]}, "weights_to_int8", {}),
    "int8-weights in a budget": ({"budget": BUDGET, "inputs": ["s.npz"]}, "weights_to_int8",
                                 {"budget": BUDGET, "inputs": ["s.npz"]}),
    "int32 with a budget": ({"budget": BUDGET}, "int64_to_int32", {}),
}  # fmt: skip
"""The value is the first word; what is given, the pass, and its options."""


@pytest.mark.parametrize("case", PASSES)
def test_the_pass_of_a_value_has_the_options_that_it_takes(case: str) -> None:
    given, name, settings = PASSES[case]
    made = precision_pass(case.split(maxsplit=1)[0], PrecisionOptions(**given))
    assert str(made) == str(get_pass(name, **settings))


@pytest.mark.parametrize("name", ["int8", "int8-dynamic", "fp8", "int8-weights", "int4-weights"])
def test_what_is_quantised_promises_a_distance_from_noise(name: str) -> None:
    assert precision_pass(name, PrecisionOptions()).info.promise == FEW_BITS
    budget = precision_pass(name, PrecisionOptions(budget="sqnr>=30")).info.promise
    assert str(budget) == "lossy (sqnr in [30, inf])"


def test_other_values_promise_what_their_pass_does_or_the_budget() -> None:
    assert precision_pass("int32", PrecisionOptions()).info.promise.numerics is not Numerics.LOSSY
    plain = precision_pass("bf16", PrecisionOptions()).info.promise
    assert plain == get_pass("float_to_bfloat16").info.promise
    found = precision_pass("bf16", PrecisionOptions(budget="max_abs<=0.5")).info.promise
    assert str(found) == "lossy (max_abs in [-inf, 0.5])"


def test_a_budget_says_nothing_of_passes_that_lose_nothing() -> None:
    info = get_pass("int64_to_int32").info
    assert conversion_promise(info, BUDGET) == info.promise
    assert "quantize" in PROMISED
    assert "int64_to_int32" not in PROMISED


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [("cosine>=0.9", 0.9, math.inf), ("max_abs<=0.5", -math.inf, 0.5)],
)
def test_the_limit_of_a_budget_is_one_end(text: str, low: float, high: float) -> None:
    promise = budget_promise(budget_of(text))
    metric = promise.metric
    assert metric is not None
    assert (metric.low, metric.high) == (low, high)
    assert promise == budget_promise(budget_of(text))
    assert promise != budget_promise(budget_of("cosine>=0.8"))


def test_the_measure_of_a_budget_compares_two_arrays() -> None:
    metric = budget_promise(budget_of("max_abs<=0.5")).metric
    assert metric is not None
    assert metric.function(np.array([1.0, 2]), np.array([1.25, 2])) == 0.25
    # There is nothing to compare: the limit holds.
    assert metric.function(np.zeros(0), np.zeros(0)) == 0.5
