"""The page of a comparison: outputs, and the error of each layer along the model."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from tiered.extensions.debug.layer_differences import Layer, LayerComparison
from tiered.extensions.debug.models import ModelComparison, OutputRow
from tiered.support.amounts import counted
from tiered.support.pages import charts
from tiered.support.pages.render import page, short
from tiered.support.pages.sections import Section, Table, tables

OUTPUT = ("type", "max abs", "max rel", "ULP", "cosine", "argmax", "NaNs", "verdict")
MOST_LAYERS = 4000
"""Layers of the chart and of the table."""


def comparison_page(
    first: str, second: str, found: ModelComparison, layers: LayerComparison | None = None
) -> str:
    """Return the page of a comparison of two models.

    Args:
        first, second: the files; only their names are on the page.
        found: the outputs of both models.
        layers: the tensors of both models, if they were compared.
    """
    names = [short(os.path.basename(name)) for name in (first, second)]
    facts = [
        ("first model", names[0]),
        ("second model", names[1]),
        ("verdict", "the models agree" if found.ok else "the models differ"),
        ("allowed difference", str(found.numerics)),
        ("runtime", str(found.referee)),
    ]
    if layers is not None:
        wrong = layers.first_wrong
        where = "none" if wrong is None else f"{wrong.op_type} {short(wrong.node)}: {wrong}"
        facts.append(("first layer that differs", where))
    trials = [
        Table(
            f"Inputs {number} of {len(found.trials)}{_sizes(trial.dims)}",
            ("output", *OUTPUT),
            [(short(row.difference.name), *cells(row)) for row in trial.rows],
        )
        for number, trial in enumerate(found.trials, 1)
    ]
    sections = [
        tables("Summary", Table("The comparison", ("", ""), facts)),
        tables("Outputs", *trials),
    ]
    if layers is not None:
        sections.append(_layers(layers))
    return page(f"tiered verify {names[0]} {names[1]}", sections)


def cells(row: OutputRow) -> Iterator[str]:
    """Yield the cells of one tensor, as in `OUTPUT`."""
    found = row.difference
    yield f"{row.dtype}{list(row.shape)}" if row.dtype and row.shape is not None else ""
    yield f"{found.max_abs:.1e}"
    yield f"{found.max_rel:.1e}"
    yield "" if found.max_ulp is None else f"{found.max_ulp:,}"
    yield "" if found.cosine is None else f"{found.cosine:.6f}"
    yield "" if row.argmax is None else f"{row.argmax:.1%}"
    differ = f", {found.nan_mismatch:,} differ" if found.nan_mismatch else ""
    yield f"{row.nans[0]:,} and {row.nans[1]:,}{differ}" if any(row.nans) else ""
    yield "ok" if found.ok else f"differs: {found.reason}"


def _sizes(dims: object) -> str:
    pairs = dims.items() if isinstance(dims, dict) else ()
    sizes = ", ".join(f"{short(str(name))}={size}" for name, size in pairs)
    return f" ({sizes})" if sizes else ""


def _layers(found: LayerComparison) -> Section:
    shown = found.layers[:MOST_LAYERS]
    last = max((layer.place for layer in shown), default=0)
    points = tuple(_point(layer, last, layer is found.first_wrong) for layer in shown)
    wrong = found.first_wrong
    about = "no layer differs" if wrong is None else f"the first that differs is {wrong.node}"
    chart = charts.Chart(
        f"Largest error of each layer, allowed: {found.numerics}; {short(about)}",
        "nodes in the order of the second model",
        "max abs",
        charts.error_ticks(),
        points,
        charts.line([(point.x, point.y) for point in points]),
    )
    rows: list[Sequence[str | int]] = [
        (layer.place, short(layer.node), layer.op_type, short(layer.second), *cells(layer.row))
        for layer in shown
    ]
    runs = counted(found.runs, "run")
    caption = f"{len(found.layers):,} of {counted(found.pairs, 'layer')}, in {runs}"
    table = Table(caption, ("place", "node", "operator", "value", *OUTPUT), rows)
    notes = [f"In the chart {about}."] if wrong is not None else []
    if len(found.layers) > len(shown):
        notes.append(f"The first {len(shown):,} of {len(found.layers):,} layers are shown.")
    return Section("Layers", "chart.html.j2", {"chart": chart, "table": table, "notes": notes})


def _point(layer: Layer, last: int, is_first: bool) -> charts.Point:
    found = layer.row.difference
    share = charts.error_share(found.max_abs, is_comparable=layer.ok or bool(found.max_abs))
    about = f"{short(layer.node)} ({layer.op_type}): max abs {found.max_abs:.1e}"
    mark = "first" if is_first else "" if layer.ok else "wrong"
    return charts.Point(charts.x_at(layer.place, last), charts.y_at(share), about, mark)
