"""The report of a quantisation: its rows, shares and JSON, and the chart."""

import json
import math
from typing import Any

import pytest

from tests.small import made_by, named, parsed
from tiered import DataType
from tiered.numerics.calibration.calibrate import Calibration
from tiered.numerics.quantization import quantization_report
from tiered.numerics.quantization.placement import PlacedUnit
from tiered.numerics.quantization.quantization_plan import QuantizationPlan, Unit
from tiered.numerics.quantization.quantization_report import (
    QuantizationReport,
    Row,
    report_of,
    report_svg,
)
from tiered.numerics.quantization.quantization_result import QuantizationResult
from tiered.numerics.quantization.scales import Parameters
from tiered.support.pages.charts import LEFT as LEFT_EDGE, RIGHT, WIDTH, x_at

DATA = Parameters(0.5, 0, DataType.UINT8)
DONE = Row("a", "MatMul", "a", "uint8 x int8", 0.5, 4, 30.0, 1.0, 30)
LEFT = Row("b", "Conv", "b", "float", macs=10, reason="the node is skipped")


def report(*rows: Row, **more: Any) -> QuantizationReport:
    return QuantizationReport(rows, more.pop("sqnr", 20.0), 2, False, **more)


def test_products_without_a_reason_are_quantised() -> None:
    assert report(DONE, LEFT, DONE).quantized == 2
    assert report().quantized == 0


@pytest.mark.parametrize(
    ("rows", "share"),
    [
        ((DONE, LEFT), 0.75),
        ((DONE,), 1.0),
        ((LEFT,), 0.0),
        ((), 0.0),
        ((Row("a", "MatMul", "a", "x"), Row("b", "Conv", "b", "float", reason="why")), 0.5),
    ],
)
def test_the_share_is_of_multiply_adds_or_of_products(rows: tuple[Row, ...], share: float) -> None:
    assert report(*rows).share_of_macs == share


def test_a_record_is_json() -> None:
    found = report(
        DONE, LEFT, sqnr=math.inf, deployed=25.0, returned=("b",), others=3, is_saturated=True,
        differing=0.25, floating=(("Exp", 2, "no kernel"),),
    ).record()  # fmt: skip
    assert json.loads(json.dumps(found, allow_nan=False)) == {
        "quantised": 1, "products": 2, "share_of_macs": 0.75, "other_operators": 3, "sqnr": "inf",
        "differing": 0.25, "sqnr_deployed": 25.0, "saturates": True, "samples": 2,
        "made_inputs": False, "returned": ["b"],
        "floating": [{"op_type": "Exp", "nodes": 2, "reason": "no kernel"}],
        "layers": [
            {"node": "a", "op_type": "MatMul", "output": "a", "dtype": "uint8 x int8",
             "scale": 0.5, "weight_scales": 4, "sqnr": 30.0, "contribution": 1.0, "macs": 30,
             "reason": ""},
            {"node": "b", "op_type": "Conv", "output": "b", "dtype": "float", "scale": None,
             "weight_scales": 0, "sqnr": None, "contribution": 0.0, "macs": 10,
             "reason": "the node is skipped"},
        ],
    }  # fmt: skip
    ratios = [report(sqnr=each).record()["sqnr"] for each in (None, -math.inf)]
    assert ratios == [None, "-inf"]


# --- of a quantisation ----------------------------------------------------------------------------

TEXT = """(float[2,3] x) => (float[2,4] y) <float[3,4] w = {1,2,3,4,5,6,7,8,9,1,2,3},
    float[4,4] v = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7}> {
    [first] a = MatMul(x, w)  b = MatMul(a, v)  [last] c = MatMul(b, v)  y = Exp(c) }"""


def quantised(**more: Any) -> QuantizationResult:
    model = parsed(TEXT)
    a, b, c, y = (made_by(model, name) for name in "abcy")
    roles: Any = {0: "data", 1: "weight"}
    plan = QuantizationPlan([Unit(b, roles), Unit(a, roles)], [(c, "it returned")],
                floating=[(y, "no kernel")])  # fmt: skip
    stored = {"a": PlacedUnit(("uint8", "int8"), (DATA,), (1.0, 2.0, 3.0, 4.0)),
              "b": PlacedUnit(("uint8", "int8"), (DATA._replace(scale=0.25),), (1.0,))}  # fmt: skip
    found: dict[str, Any] = {
        "alone": {"a": 20.0, "b": 30.0}, "sqnr": 19.0, "outputs": {a: "a", b: "b"},
        "returned": [(c, 5.0)], "calibration": Calibration({}, 3, is_made=True), **more,
    }  # fmt: skip
    return QuantizationResult(plan, stored, **found)


SHAPES = {"a": (2, 4), "b": (2, 4), "c": (2, 4)}


def test_rows_are_in_the_order_of_the_model() -> None:
    found = report_of(quantised(), SHAPES)
    assert [row.node for row in found.rows] == ["first", "b", "last"]
    assert [row.node for row in report_of(quantised(), {"c": (2, 4), "b": (2, 4)}).rows] == [
        "last", "b", "first",
    ]  # fmt: skip


def test_a_row_has_what_a_product_is_stored_as_and_what_it_costs() -> None:
    first, second, last = report_of(quantised(), SHAPES).rows
    # 20 dB is an error of 1 in 100, 30 dB one of 1 in 1000.
    assert first == Row("first", "MatMul", "a", "uint8 x int8", 0.5, 4, 20.0,
                        0.01 / (0.01 + 0.001), 2 * 3 * 4)  # fmt: skip
    assert second == Row("b", "MatMul", "b", "uint8 x int8", 0.25, 1, 30.0,
                         0.001 / (0.01 + 0.001), 2 * 4 * 4)  # fmt: skip
    assert last == Row("last", "MatMul", "c", "float", macs=2 * 4 * 4, reason="it returned")


def test_without_ratios_no_product_contributes() -> None:
    rows = report_of(quantised(alone={}), SHAPES).rows
    assert [(row.sqnr, row.contribution) for row in rows] == [(None, 0.0)] * 3


@pytest.mark.parametrize(
    ("alone", "parts"),
    [
        ({"a": -math.inf, "b": 30.0}, [1.0, 0.0]),
        ({"a": -math.inf, "b": -math.inf}, [0.5, 0.5]),
        ({"a": math.inf, "b": 30.0}, [0.0, 1.0]),
        ({"a": math.inf, "b": math.inf}, [0.0, 0.0]),
    ],
)
def test_results_that_are_no_numbers_are_the_whole_error(
    alone: dict[str, float], parts: list[float]
) -> None:
    found = report_of(quantised(alone=alone), SHAPES)
    assert [row.contribution for row in found.rows[:2]] == parts
    json.dumps(found.record(), allow_nan=False)


def test_a_report_has_what_was_measured() -> None:
    found = report_of(quantised(deployed=18.0, differing=0.5, is_saturated=True), SHAPES)
    assert (found.sqnr, found.deployed, found.differing) == (19.0, 18.0, 0.5)
    assert (found.samples, found.made_inputs, found.returned) == (3, True, ("last",))
    assert (found.others, found.is_saturated) == (0, True)
    assert found.floating == (("Exp", 1, "no kernel"),)
    given = report_of(quantised(calibration=Calibration({}, 3)), SHAPES)
    assert (given.samples, given.made_inputs) == (3, False)
    none = report_of(quantised(calibration=None), SHAPES)
    assert (none.samples, none.made_inputs) == (0, False)


def test_operands_have_the_shapes_of_what_is_quantised() -> None:
    """Of what is computed for a sample, behind a QuantizeLinear and a DequantizeLinear too."""
    model = parsed(
        """(float[N,3] x) => (float[N,4] y) <float[3,4] w = {1,2,3,4,5,6,7,8,9,1,2,3},
        float s = {1}> { q = QuantizeLinear(x, s)  d = DequantizeLinear(q, s)  y = MatMul(d, w) }"""
    )
    node = made_by(model, "y")
    plan = QuantizationPlan([], [(node, "why")])
    (row,) = report_of(QuantizationResult(plan), {"x": (2, 3), "y": (2, 4)}).rows
    assert row.macs == 2 * 3 * 4
    (row,) = report_of(QuantizationResult(plan), {}).rows
    assert row.macs == 0


def test_a_result_has_the_shape_of_its_first_name_and_no_other_one() -> None:
    model = parsed("(float[2,3] x) => (float[2,3] y) { a = Neg(x)  y = Exp(a) }")
    a, node = named(model, "a"), made_by(model, "a")
    for shapes, outputs, expected in (
        ({"first": (2, 4)}, {node: "first"}, (2, 4)),
        ({"a": (5, 3)}, {}, (5, 3)),
        ({"x": (9, 3)}, {}, (2, 3)),
        ({}, {}, (2, 3)),
    ):
        assert quantization_report._shape(a, shapes, outputs) == expected
    assert quantization_report._shape(None, {}, {}) is None


# --- the chart ------------------------------------------------------------------------------------


def bars(svg: str, kind: str) -> list[str]:
    return [part for part in svg.split("<rect ")[1:] if f'class="{kind}"' in part]


def height(bar: str) -> float:
    return float(bar.partition('height="')[2].partition('"')[0])


def test_a_bar_is_as_high_as_the_ratio() -> None:
    rows = [Row(f"n{at}", "MatMul", "o", "x", sqnr=sqnr)
            for at, sqnr in enumerate([0.0, 40.0, 80.0, 100.0, -5.0, None])]  # fmt: skip
    found = bars(report_svg(report(*rows)), "bar")
    none, half, whole, above, below, unknown = map(height, found)
    assert (none, below, unknown) == (0, 0, 0)
    assert whole == above > 100
    assert half == pytest.approx(whole / 2, abs=0.1)
    assert "n1 (MatMul): 40.0 dB" in found[1]
    assert "n5 (MatMul): not measured" in found[5]


def test_bars_are_side_by_side_in_the_order_of_the_rows() -> None:
    found = bars(report_svg(report(*[DONE] * 4)), "bar")
    width = 0.7 * (WIDTH - LEFT_EDGE - RIGHT) / 4
    for at, bar in enumerate(found):
        x, wide = (
            float(bar.partition(f'{name}="')[2].partition('"')[0]) for name in ("x", "width")
        )
        assert wide == pytest.approx(width, abs=0.06)
        assert x + wide / 2 == pytest.approx(x_at(at + 0.5, 4), abs=0.2)


def test_a_product_that_stays_float_is_a_mark_with_its_reason() -> None:
    svg = report_svg(report(DONE, LEFT), "a title")
    (mark,) = bars(svg, "bad")
    assert height(mark) == 4
    assert "b (Conv): the node is skipped" in mark
    assert "2 products in the order of the model; 1 stay float (marks at the bottom)" in svg
    assert "a title" in svg
    alone = report_svg(report(DONE))
    assert "1 product in the order of the model</text>" in alone
    assert "signal to noise of each product" in alone


def test_a_chart_of_no_products_is_one_too() -> None:
    svg = report_svg(report())
    assert "0 products in the order of the model" in svg
    assert [f"{ratio} dB" in svg for ratio in (0, 20, 40, 60, 80, 100)] == [True] * 5 + [False]
