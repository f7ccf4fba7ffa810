"""The report of a quantisation: a row for each product, what it costs, and a chart."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from tiered.graph import Node, Value
from tiered.graph.queries.multiply_adds import multiply_adds
from tiered.numerics.quantization.choice import ratio_record
from tiered.numerics.quantization.quantization_result import QuantizationResult
from tiered.support.amounts import counted
from tiered.support.pages.charts import BOTTOM, HEIGHT, LEFT, RIGHT, WIDTH, Tick, x_at, y_at
from tiered.support.pages.svg import framed, svg_file, text

Shapes = Mapping[str, tuple[int, ...]]

_TOP: Final = 80.0
"""The largest ratio of the chart, in dB."""


@dataclass(frozen=True)
class Row:
    """A product.

    Attributes:
        node, op_type: its name and operator.
        output: the name of its output.
        dtype: of its operands, as "uint8 x int8"; "float" if it stays float.
        scale: of its data; None without one.
        weight_scales: how many scales its weight has.
        sqnr: the signal to noise ratio in dB when it alone is quantised; None if not measured.
        contribution: its part of the errors of all products.
        macs: how many multiply-adds it has for the first sample; 0 in a body.
        reason: why it stays float; empty if it is quantised.
    """

    node: str
    op_type: str
    output: str
    dtype: str
    scale: float | None = None
    weight_scales: int = 0
    sqnr: float | None = None
    contribution: float = 0.0
    macs: int = 0
    reason: str = ""


@dataclass(frozen=True)
class QuantizationReport:
    """What was quantised, and at what cost.

    Attributes:
        rows: the products.
        sqnr: of the outputs of the model, in dB; None if it was not measured.
        differing: the share of the elements of the outputs that differ, if none is of floats.
        deployed: the same with onnxruntime's own optimisations; None if not measured.
        is_saturated: whether onnxruntime's sums of 8-bit products saturate on this processor.
        others: how many operators are quantised that are no products, for a target of integers.
        samples: how many samples the ranges were measured on.
        made_inputs: whether these were made.
        returned: the products that the budget returned to float.
        floating: for a target of integers, the other operators that stay float: the operator, how
            many there are, and the reason.
    """

    rows: tuple[Row, ...]
    sqnr: float | None
    samples: int
    made_inputs: bool
    returned: tuple[str, ...] = ()
    deployed: float | None = None
    others: int = 0
    is_saturated: bool = False
    differing: float | None = None
    floating: tuple[tuple[str, int, str], ...] = ()

    @property
    def quantized(self) -> int:
        """How many products are quantised."""
        return sum(not row.reason for row in self.rows)

    @property
    def share_of_macs(self) -> float:
        """The part of the multiply-adds that is quantised; of the products if none are known."""
        whole = sum(row.macs for row in self.rows)
        done = sum(row.macs for row in self.rows if not row.reason)
        return done / whole if whole else self.quantized / max(len(self.rows), 1)

    def record(self) -> dict[str, Any]:
        """Return the report as JSON has it, ratios as `ratio_record` returns them."""
        rows = [{**asdict(row), "sqnr": ratio_record(row.sqnr)} for row in self.rows]
        return {
            "quantised": self.quantized,
            "products": len(self.rows),
            "share_of_macs": self.share_of_macs,
            "other_operators": self.others,
            "sqnr": ratio_record(self.sqnr),
            "differing": self.differing,
            "sqnr_deployed": ratio_record(self.deployed),
            "saturates": self.is_saturated,
            "samples": self.samples,
            "made_inputs": self.made_inputs,
            "returned": list(self.returned),
            "floating": [
                {"op_type": name, "nodes": count, "reason": reason}
                for name, count, reason in self.floating
            ],
            "layers": rows,
        }


def report_of(found: QuantizationResult, shapes: Shapes) -> QuantizationReport:
    """Return the report of a quantisation.

    Args:
        found: what was done.
        shapes: of the outputs and operands of products, by name.
    """
    contributions = _contributions(found.alone)
    rows = []
    for unit in found.plan.units:
        name = found.outputs[unit.node]
        stored = found.stored[name]
        rows.append(
            Row(
                unit.node.name or name,
                unit.node.op_type,
                name,
                " x ".join(stored.dtypes),
                stored.data[0].scale,
                len(stored.scales),
                found.alone.get(name),
                contributions.get(name, 0.0),
                multiply_adds(unit.node, lambda value: _shape(value, shapes, found.outputs)),
            )
        )
    for node, reason in found.plan.kept:
        macs = multiply_adds(node, lambda value: _shape(value, shapes, found.outputs))
        output = next((value.name for value in node.outputs if value is not None), "")
        row = Row(node.label, node.op_type, output, "float", macs=macs, reason=reason)
        rows.append(row)
    order = {name: at for at, name in enumerate(shapes)}
    rows.sort(key=lambda row: order.get(row.output, len(order)))
    measured = found.calibration
    counts = Counter((node.operator, reason) for node, reason in found.plan.floating)
    return QuantizationReport(
        tuple(rows),
        found.sqnr,
        0 if measured is None else measured.samples,
        measured is not None and measured.is_made,
        tuple(node.label for node, _ in found.returned),
        found.deployed,
        len(found.plan.others),
        found.is_saturated,
        found.differing,
        tuple((name, count, reason) for (name, reason), count in counts.most_common()),
    )


def _contributions(alone: Mapping[str, float]) -> dict[str, float]:
    """Return the part of each product in the errors of all, by their ratios in dB.

    Products whose results are no numbers, -inf dB, have the same part each, and others none.
    """
    lost = [name for name, ratio in alone.items() if ratio == -math.inf]
    if lost:
        return dict.fromkeys(lost, 1 / len(lost))
    noise = {name: 10 ** (-ratio / 10) for name, ratio in alone.items()}
    whole = sum(noise.values())
    return {name: each / whole for name, each in noise.items()} if whole else {}


def _shape(
    value: Value | None, shapes: Shapes, outputs: Mapping[Node, str]
) -> tuple[int, ...] | None:
    """Return the shape of an operand or result, through the Q/DQ that computes it."""
    while value is not None:
        producer = value.producer
        name = value.name if producer is None else outputs.get(producer, value.name)
        if name in shapes:
            return shapes[name]
        if producer is None or producer.op_type not in ("DequantizeLinear", "QuantizeLinear"):
            return value.static_shape
        value = producer.inputs[0]
    return None


# --- the chart ------------------------------------------------------------------------------------


def report_svg(report: QuantizationReport, title: str = "") -> str:
    """Return a chart: products from left to right, their ratio in dB from bottom to top.

    A bar is as high as the ratio; a product that stays float is a red mark at the bottom.
    """
    title = title or "signal to noise of each product"
    return svg_file(WIDTH, HEIGHT, title, _lines(report.rows, title))


def _lines(rows: Sequence[Row], title: str) -> Iterator[str]:
    kept = sum(bool(row.reason) for row in rows)
    left = f"; {kept:,} stay float (marks at the bottom)" if kept else ""
    ticks = (Tick(y_at(ratio / _TOP), f"{ratio} dB") for ratio in range(0, int(_TOP) + 1, 20))
    yield from framed(
        title, ticks, f"{counted(len(rows), 'product')} in the order of the model{left}"
    )
    width = max(1.0, 0.7 * (WIDTH - LEFT - RIGHT) / max(len(rows), 1))
    for at, row in enumerate(rows):
        x = x_at(at + 0.5, len(rows)) - width / 2
        share = min(max(row.sqnr or 0.0, 0.0), _TOP) / _TOP
        height = 4.0 if row.reason else round(HEIGHT - BOTTOM - y_at(share), 1)
        said = row.reason or ("not measured" if row.sqnr is None else f"{row.sqnr:.1f} dB")
        about = f"{text(row.node)} ({text(row.op_type)}): {text(said)}"
        yield (
            f'<rect class="{"bad" if row.reason else "bar"}" x="{x:.1f}" '
            f'y="{HEIGHT - BOTTOM - height:.1f}" width="{width:.1f}" height="{height:.1f}">'
            f"<title>{about}</title></rect>"
        )
