"""The ranges of what a plan quantises, and the operators that must stay float for its numbers."""

from typing import Any

import numpy as np
import pytest

from tests.small import made_by, named, parsed
from tiered import DataType, Model
from tiered.graph.intervals.interval import Interval
from tiered.numerics.calibration.calibrate import Calibration
from tiered.numerics.calibration.observers import Range
from tiered.numerics.quantization import plan_ranges
from tiered.numerics.quantization.plan_ranges import PlanRanges, masked
from tiered.numerics.quantization.quantization_plan import QuantizationPlan, plan_of
from tiered.numerics.quantization.scales import Parameters
from tiered.numerics.quantization.scheme import Scheme

PRODUCT = """(float[2,3] x) => (float[2,4] y) <float[3,4] w = {1,2,3,4,5,6,7,8,9,1,2,3}> {
    y = MatMul(x, w) }"""


def seen(low: float, high: float, *, oversized: int = 0) -> Range:
    return Range(low, high, low, high, 10, oversized=oversized)


def ranges_of(
    text: str, scheme: Scheme | None = None, proven: dict[str, Interval] | None = None,
    **ranges: Range,
) -> tuple[Model, QuantizationPlan, PlanRanges]:  # fmt: skip
    model = parsed(text)
    model.refresh_types()
    scheme = scheme or Scheme()
    measured = Calibration(ranges, 1, proven=proven or {})
    return model, plan_of(model, scheme), PlanRanges(model, measured, scheme)


def kept(plan: QuantizationPlan) -> dict[str, str]:
    return {node.output.name: reason for node, reason in plan.kept}


def products(plan: QuantizationPlan) -> list[str]:
    return [unit.node.output.name for unit in plan.units]


# --- ranges ---------------------------------------------------------------------------------------


def test_a_value_has_its_measured_range_within_what_is_proven() -> None:
    model, _, found = ranges_of(PRODUCT, x=seen(-1, 3))
    assert found.of(named(model, "x")) == (-1, 3)
    assert found.of(named(model, "y")) is None
    model, _, found = ranges_of(PRODUCT, x=seen(-1, 3), proven={"x": Interval(0, 2)})
    assert found.of(named(model, "x")) == (0, 2)


def test_a_constant_has_the_range_of_its_numbers() -> None:
    model, _, found = ranges_of(PRODUCT)
    assert found.of(named(model, "w")) == (1, 9)


@pytest.mark.parametrize(("shape", "expected"), [("0,3", (0, 0)), ("2,0", (0, 0)), ("N,3", None)])
def test_a_tensor_without_elements_has_the_range_of_0(
    shape: str, expected: tuple[float, float] | None
) -> None:
    model, _, found = ranges_of(f"(float[{shape}] x) => (float[A,B] y) {{ y = Neg(x) }}")
    assert found.of(named(model, "x")) == expected


def test_a_value_of_a_body_has_its_proven_range() -> None:
    text = """(float[2] x, bool c) => (float[A] y) {
        y = If(c) <then_branch = t () => (float p) { s = Cast<to=1>(c)  p = Neg(s) },
                   else_branch = e () => (float[2] q) { n = Neg(x)  q = Abs(n) }> }"""
    model, _, found = ranges_of(text)
    values = {value.name: value for graph in model.graphs() for value in graph.values.values()}
    assert found.of(values["s"]) == (0, 1)
    assert found.of(values["p"]) == (-1, 0)
    assert found.of(values["n"]) is None


def test_parameters_are_those_of_the_ranges() -> None:
    _, plan, found = ranges_of(PRODUCT, x=seen(0, 255), y=seen(0, 1))
    parameters = {value.name: each for value, each in found.parameters(plan).items()}
    assert parameters["x"] == (1.0, 0, DataType.UINT8)


# --- operators without a range --------------------------------------------------------------------


def test_a_product_without_a_range_stays_float() -> None:
    _, plan, found = ranges_of(PRODUCT)
    assert kept(found.known(plan)) == {"y": "no finite number was seen"}
    _, plan, found = ranges_of(PRODUCT, x=seen(0, 1), y=seen(0, 1))
    assert products(found.known(plan)) == ["y"]


def test_a_product_in_a_body_is_not_measured() -> None:
    text = """(float[2,3] x, bool c) => (float[2,3] y) <float[3,3] w = {1,2,3,4,5,6,7,8,9}> {
        y = If(c) <then_branch = t () => (float[2,3] p) { n = Neg(x)  p = MatMul(n, w) },
                   else_branch = e () => (float[2,3] q) { q = Abs(x) }> }"""
    _, plan, found = ranges_of(text, x=seen(0, 1))
    assert kept(found.known(plan)) == {"p": "a value inside a body is not measured"}


def test_numbers_of_no_size_decide_no_range() -> None:
    for oversized, reasons in ((0, {}), (1, {"y": "numbers of 1e+30 or more were seen"})):
        _, plan, found = ranges_of(PRODUCT, x=seen(0, 1, oversized=oversized), y=seen(0, 1))
        assert kept(found.known(plan)) == reasons


def test_products_that_depend_on_one_without_a_range_are_looked_at_again() -> None:
    text = """(float[2,3] x) => (float[2,3] y) <float[3,3] w = {1,2,3,4,5,6,7,8,9}> {
        a = MatMul(x, w)  y = MatMul(a, w) }"""
    _, plan, found = ranges_of(text, x=seen(0, 1), y=seen(0, 1))
    assert set(kept(found.known(plan))) == {"a", "y"}
    _, plan, found = ranges_of(text, a=seen(0, 1), y=seen(0, 1))
    assert kept(found.known(plan)) == {"a": "no finite number was seen"}


# --- masks ----------------------------------------------------------------------------------------

MASK = """(float[2,3] x, float[2,3] m) => (float[2,3] y) <float[3,3] w = {1,2,3,4,5,6,7,8,9}> {
    a = Add(x, m)  s = Softmax(a)  p = MatMul(a, w)  q = MatMul(x, w)  t = Add(p, q)
    y = Add(s, t) }"""


def test_what_reads_a_mask_stays_float() -> None:
    model = parsed(MASK)
    plan = plan_of(model, Scheme())
    assert masked(model, plan, []) == {}
    feeds: Any = {"m": np.full((2, 3), -1e9, np.float32), "x": np.zeros((2, 3), np.float32)}
    found = masked(model, plan, [feeds])
    assert {node.output.name: why for node, why in found.items()} == {
        "p": "mask: an operand has masks",
    }  # fmt: skip


def test_other_operators_that_compute_masks_stay_float() -> None:
    model = parsed(MASK)
    plan = plan_of(model, Scheme())
    node = made_by(model, "a")
    plan.others[node] = [named(model, "x"), named(model, "m")]
    plan.others[made_by(model, "t")] = [named(model, "p")]
    feeds: Any = {"m": np.full((2, 3), -1e9, np.float32), "x": np.zeros((2, 3), np.float32)}
    assert node in masked(model, plan, [feeds])
    assert made_by(model, "t") not in masked(model, plan, [feeds])


# --- numbers that would become 0 ------------------------------------------------------------------

DIVISOR = """(float[2,3] x, float[2,3] d) => (float[2,3] y) <float[3,3] w = {1,2,3,4,5,6,7,8,9},
    float k = {LEAST}> { c = Max(d, k)  p = MatMul(c, w)  y = Div(p, c) }"""


def lost(
    least: float, high: float, scheme: Scheme | None = None, *, others: bool = True
) -> tuple[Model, QuantizationPlan, QuantizationPlan]:
    model, plan, found = ranges_of(
        DIVISOR.replace("LEAST", str(least)), scheme, c=seen(least, high), p=seen(0, 255),
        y=seen(0, 1), d=seen(0, 1), x=seen(0, 1),
    )  # fmt: skip
    if others:
        node, c = made_by(model, "y"), named(model, "c")
        plan.others[node] = [c, named(model, "p")]
        plan.pairs.setdefault(c, {})[node] = None
    return model, plan, found.without_lost(plan)


def test_a_divisor_that_would_become_0_stays_float() -> None:
    """One step is 1: a least number of 0.4 would be 0, one of 0.6 would be 1."""
    model, _, left = lost(0.4, 255)
    assert made_by(model, "y") not in left.others
    assert left.floors == {}
    model, plan, left = lost(0.6, 255)
    assert made_by(model, "y") in left.others
    assert left is plan


def test_a_product_reads_what_becomes_0_as_it_is() -> None:
    _, _, left = lost(0.4, 255, others=False)
    assert products(left) == ["p"]


def test_a_target_of_integers_raises_what_was_not_seen_so_small() -> None:
    scheme = Scheme(in_integers=lambda node: ())
    text = DIVISOR.replace("LEAST", "0.4")
    model, plan, found = ranges_of(
        text, scheme, c=Range(0, 255, 3, 255, 9), p=seen(0, 255), y=seen(0, 1), d=seen(0, 1),
        x=seen(0, 1),
    )  # fmt: skip
    node, c = made_by(model, "y"), named(model, "c")
    plan.others[node] = [c]
    plan.pairs.setdefault(c, {})[node] = None
    left = found.without_lost(plan)
    assert node in left.others
    # Range analysis says 0.4 or more, and 3 was the least that was seen: it is one step at least.
    assert left.floors == {c: 1}


def test_a_target_of_integers_lowers_negative_numbers() -> None:
    scheme = Scheme(in_integers=lambda node: ())
    text = DIVISOR.replace("LEAST", "-0.4").replace("Max", "Min")
    model, plan, found = ranges_of(
        text, scheme, c=Range(-255, 0, -255, -3, 9), p=seen(0, 255), y=seen(0, 1), d=seen(0, 1),
        x=seen(0, 1),
    )  # fmt: skip
    node, c = made_by(model, "y"), named(model, "c")
    plan.others[node] = [c]
    plan.pairs.setdefault(c, {})[node] = None
    assert found.without_lost(plan).floors == {c: -1}


def test_numbers_that_were_seen_count_for_every_target() -> None:
    scheme = Scheme(in_integers=lambda node: ())
    model, _, left = lost(0.4, 255, scheme)
    assert made_by(model, "y") not in left.others
    assert left.floors == {}


def test_a_target_of_floats_keeps_what_range_analysis_does_not_exclude() -> None:
    model, plan, found = ranges_of(
        DIVISOR.replace("LEAST", "0.4"), None, c=Range(0, 255, 3, 255, 9), p=seen(0, 255),
        y=seen(0, 1), d=seen(0, 1), x=seen(0, 1),
    )  # fmt: skip
    node, c = made_by(model, "y"), named(model, "c")
    plan.others[node] = [c]
    plan.pairs.setdefault(c, {})[node] = None
    left = found.without_lost(plan)
    assert node not in left.others
    assert left.floors == {}


def test_a_product_that_computes_a_divisor_stays_float() -> None:
    text = """(float[2,3] x, float[2,3] z) => (float[2,3] y) <float[3,3] w = {1,2,3,4,5,6,7,8,9}> {
        a = MatMul(x, w)  b = MatMul(x, w)  y = Div(b, a) }"""
    for low, high, left in (
        (0.4, 255, ["b"]),
        (0.6, 255, ["a", "b"]),
        (-255, -0.4, ["b"]),
        (-255, -0.6, ["a", "b"]),
    ):
        model, plan, found = ranges_of(
            text, a=seen(low, high), b=seen(0, 255), x=seen(0, 1), y=seen(0, 1)
        )
        node, a = made_by(model, "y"), named(model, "a")
        plan.others[node] = [a, named(model, "b")]
        plan.pairs.setdefault(a, {})[node] = None
        assert products(found.without_lost(plan)) == left


# --- single values --------------------------------------------------------------------------------


def test_the_least_magnitude_of_ranges_and_arrays() -> None:
    for low, high, least in ((1, 3, 1), (-3, -1, 1), (-1, 2, 0), (0, 2, 0), (-2, 0, 0)):
        assert plan_ranges._away_from_zero(low, high) == least
    for numbers, least in (([0, -2, 3], 2), ([0], 0), ([np.inf, -5, np.nan], 5), ([], 0)):
        assert plan_ranges._least_of(np.array(numbers, np.float32)) == least


def test_numbers_of_inputs_outputs_constants_and_bodies_cannot_change() -> None:
    text = """(float[2] x, bool c) => (float[2] y) <float[2] k = {1,2}> { a = Add(x, k)
        y = If(c) <then_branch = t () => (float[2] p) { n = Neg(a)  p = Abs(n) },
                   else_branch = e () => (float[2] q) { q = Abs(x) }> }"""
    model = parsed(text)
    values = {value.name: value for graph in model.graphs() for value in graph.values.values()}
    bound = {name: plan_ranges._is_bound(values[name]) for name in "xkayn"}
    assert bound == {"x": True, "k": True, "a": False, "y": True, "n": True}


def test_the_least_magnitude_of_a_value_is_proven_seen_or_stored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = """(float[2] x, bool c) => (float[2] y) <float[2] k = {0,-2}, float[3] w = {1,2,3},
        float four = {4}> { a = Max(x, four)  b = Neg(x)  d = Exp(x)  i = If(c) <
        then_branch = t () => (float[2] a2) { a2 = Max(x, four) },
        else_branch = e () => (float[2] q) { q = Abs(x) }>  y = Add(a, b) }"""
    monkeypatch.setattr(plan_ranges, "_MOST_ELEMENTS", 2)
    model, _, found = ranges_of(text, a=seen(5, 9), b=seen(-9, -3), q=seen(1, 2), y=seen(-1, 2))
    values = {value.name: value for graph in model.graphs() for value in graph.values.values()}
    least = {name: found._least(values[name]) for name in ("k", "w", "a", "b", "x", "a2", "q", "y")}
    assert least == {"k": 2, "w": 0, "a": 4, "b": 3, "x": 0, "a2": 4, "q": 0, "y": 0}
    of = Parameters(1.0, 10, DataType.UINT8)
    for number, lost in ((0.4, 0.4), (0.6, 0.0), (0.0, 0.0)):
        assert found._lost(of, number) == lost


def test_a_proven_range_of_a_body_has_no_masks() -> None:
    for most, expected in ((9e29, (0, float(np.float32(9e29)))), (1e30, None), (3e38, None)):
        text = f"""(float[2] x, bool c) => (float[A] y) <float m = {{{most}}}> {{
            y = If(c) <then_branch = t () => (float p) {{ s = Cast<to=1>(c)  p = Mul(s, m) }},
                       else_branch = e () => (float[2] q) {{ q = Abs(x) }}> }}"""
        model, _, found = ranges_of(text)
        values = {value.name: value for graph in model.graphs() for value in graph.values.values()}
        assert found.of(values["p"]) == expected


def test_an_operator_needs_the_ranges_of_what_reads_it_alone() -> None:
    text = """(float[2,2] x) => (float[A,B] y) <float[2,2] w = {1,2,3,4}> { a = MatMul(x, w)
        r, s = Split<axis = 0, num_outputs = 2>(a)  t = Neg(a)  , q = Split<axis = 0,
        num_outputs = 2>(x)  u = Abs(q)  y = Concat<axis = 0>(r, s) }"""
    model, plan, _ = ranges_of(text)
    x, a, t, q = (named(model, name) for name in "xatq")
    (unit,) = plan.units
    assert plan_ranges._touched(unit) == {x, a, t}
    node = q.producer
    assert node is not None
    assert plan_ranges._around(node, [x, q]) == {x, q}
    assert plan_ranges._around(unit.node, [x]) == {x, t}


def test_other_operators_without_a_range_stay_float() -> None:
    model, plan, found = ranges_of(
        PRODUCT, Scheme(in_integers=lambda node: ()), x=seen(0, 1), y=seen(0, 1)
    )
    x, node = named(model, "x"), made_by(model, "y")
    other = model.main.op.Neg(x).producer
    assert other is not None
    plan.others[other] = [x, other.output]
    plan.pairs[other.output] = {}
    left = found.known(plan)
    assert [(each.op_type, why) for each, why in left.floating] == [
        ("Neg", "no finite number was seen")
    ]
    assert (left.others, [unit.node for unit in left.units]) == ({}, [node])
