"""Mixed precision as a whole: the order of reasons, what is measured, and where nothing is."""

from typing import Any

import numpy as np
import pytest

from tests.small import ops, parsed
from tiered import DataType, Model, Node, UsageError
from tiered.numerics.precision.lower import PrecisionRules
from tiered.numerics.precision.mixed import in_range, mixed_precision
from tiered.numerics.precision.plan_rewrite import Conversion
from tiered.rewriter import Skip
from tiered.support.errors import RuntimeFailure

HALF = DataType.FLOAT16
TEXT = """(float[2] x) => (float[2] y) <float[2] k = {2048,2048}> {
    [first] a = Sin(x)  b = Add(a, k)  c = Sub(b, k)  y = Exp(c) }"""
NO_KERNEL = "(float[2] x) => (float[2] y) { a = acme.Any(x)  b = Exp(x)  y = Add(a, b) }"


def feeds(*numbers: float) -> list[Any]:
    return [{"x": np.array(numbers, np.float32)}]


def mixed(
    text: str | Model, **options: Any
) -> tuple[Model, Conversion, list[str], dict[str, str], list[str]]:
    model = parsed(text) if isinstance(text, str) else text
    found, nodes, others = list[str](), dict[str, str](), list[str]()

    def on_skip(node: Node | None, skip: Skip) -> None:
        if node is None:
            others.append(str(skip))
        else:
            nodes[node.output.name] = str(skip)

    options = {"rules": PrecisionRules(), "inputs": feeds(1, 2), **options}
    made = mixed_precision(model, HALF, found.append, on_skip, **options)
    model.check_view(types=True)
    return model, made, found, nodes, others


def test_what_was_measured_is_reported_before_the_conversion() -> None:
    _, made, found, nodes, others = mixed("(float[2] x) => (float[2] y) { a = Sin(x)  y = Cos(a) }")
    assert found[0].startswith("measured on 1 given input by onnxruntime: cosine 1")
    assert found[-1] == "2 nodes compute in float16; Casts added: 2"
    assert (made.casts, nodes, others) == (2, {}, [])


def test_a_node_of_a_large_local_error_stays() -> None:
    _, _, _, nodes, _ = mixed(TEXT)
    assert nodes["b"].startswith("a local error of ") or nodes["c"].startswith("a local error of ")
    _, _, _, nodes, _ = mixed(TEXT, max_error=2.0)
    assert nodes == {}


def test_a_budget_keeps_what_it_needs() -> None:
    _, _, found, nodes, _ = mixed(TEXT, max_error=2.0, budget="relative<=0.01")
    assert {"b", "c"} <= nodes.keys()
    assert {*nodes.values()} <= {
        "returned for relative<=0.01", "between values that keep their type",
    }  # fmt: skip
    assert any(each.startswith("measured on 1 given input by ") for each in found)


def test_a_budget_that_is_not_readable_is_an_error() -> None:
    with pytest.raises(UsageError):
        mixed(TEXT, budget="close")


def test_a_model_that_computes_in_the_type_has_no_floats_for_a_budget() -> None:
    text = "(float16[2] x) => (float16[2] y) { y = Sin(x) }"
    model, made, found, nodes, others = mixed(text, budget="relative<=1")
    assert others == ["nodes compute in float16 already"]
    assert (made.casts, found, nodes, ops(model)) == (0, [], {}, ["Sin"])


def test_where_nothing_can_be_measured_suspects_stay() -> None:
    _, _, found, nodes, _ = mixed(NO_KERNEL)
    assert any(each.startswith("nothing was measured: ") for each in found)
    assert nodes["b"] == "its range is neither measured nor proven"
    with pytest.raises(RuntimeFailure):
        mixed(NO_KERNEL, budget="relative<=1")


def test_names_of_rules_are_checked_first() -> None:
    _, _, found, _, _ = mixed(TEXT, rules=PrecisionRules(skip_op_types=("Cos",)))
    assert found[0] == "no node has the operator Cos"
    _, _, _, nodes, _ = mixed(TEXT, rules=PrecisionRules(skip_nodes=("first",)))
    assert nodes["a"] == "the node is skipped"


def test_inputs_with_defaults_are_noted_if_inputs_stay() -> None:
    text = "(float[2] x, float[2] w = {1,2}) => (float[2] y) { y = Add(x, w) }"
    notes = [mixed(text, keep_io_types=keeps)[2] for keeps in (True, False)]
    assert [any("'w' is an input" in each for each in found) for found in notes] == [True, False]


# --- ranges alone ---------------------------------------------------------------------------------

LARGE = "(float[2] x) => (float[2] y) { a = Mul(x, x)  y = Sqrt(a) }"


def kept(text: str, *numbers: float, **options: Any) -> tuple[dict[str, str], list[str]]:
    model, said = parsed(text), list[str]()
    model.refresh_types()
    rules = options.pop("rules", PrecisionRules())
    narrowing = in_range(model, HALF, rules, said.append, inputs=feeds(*numbers), **options)
    values = {value.name: narrowing.refuse(value) for value in model.main.values.values()}
    return {name: why for name, why in values.items() if why}, said


def test_values_that_leave_the_range_on_inputs_stay() -> None:
    found, said = kept(LARGE, 300, 1)
    assert list(found) == ["a"]
    assert said == []
    assert kept(LARGE, 255, 1) == ({}, [])


def test_a_model_of_many_weights_is_not_run() -> None:
    text = LARGE.replace("{ a", "<float[2] k = {1,2}> { a").replace("Sqrt(a)", "Mul(a, k)")
    size = parsed(text).nbytes
    found, said = kept(text, 300, 1, max_bytes=size - 1)
    assert (found, said) == (
        {},
        [f"ranges were not measured: more than {size - 1:,} bytes of weights"],
    )
    found, said = kept(text, 300, 1, max_bytes=size)
    assert (list(found), said) == (["a", "y"], [])


def test_a_model_in_which_nothing_computes_is_not_run() -> None:
    rules = PrecisionRules(skip_op_types=("Mul", "Sqrt"))
    assert kept(LARGE, 300, 1, rules=rules, max_bytes=0) == ({}, [])


def test_a_model_that_does_not_run_has_no_measured_range() -> None:
    text = "(float[2] x) => (float[1] y) <int64[1] i = {5}> { g = Gather(x, i)  y = Exp(g) }"
    found, said = kept(text, 300, 1)
    assert found == {}
    assert said[0].startswith("ranges were not measured: ")
