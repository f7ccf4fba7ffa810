"""A chart of the error of each layer, as SVG."""

from __future__ import annotations

from collections.abc import Iterator

from tiered.extensions.debug.layer_differences import Layer, LayerComparison
from tiered.support.pages.charts import (
    HEIGHT,
    WIDTH,
    error_share,
    error_ticks,
    line,
    x_at,
    y_at,
)
from tiered.support.pages.svg import framed, named_point, svg_file, text


def layers_svg(found: LayerComparison, title: str = "") -> str:
    """Return a chart: the layers from left to right, their largest error from bottom to top.

    What differs by more than is allowed is red; the first of these has its name beside it.
    """
    title = title or f"largest error of each layer, allowed: {found.numerics}"
    return svg_file(WIDTH, HEIGHT, title, _lines(found, title))


def _lines(found: LayerComparison, title: str) -> Iterator[str]:
    yield from framed(title, error_ticks(), "nodes in the order of the second model")
    last = max((layer.place for layer in found.layers), default=0)
    places = [(x_at(layer.place, last), y_at(_share(layer))) for layer in found.layers]
    yield f'<polyline class="curve" points="{line(places)}" fill="none"/>'
    for (x, y), layer in zip(places, found.layers, strict=True):
        difference = layer.row.difference
        about = f"{text(layer.node)} ({text(layer.op_type)}): max abs {difference.max_abs:.1e}"
        if not layer.ok:
            about += f"; {text(difference.reason)}"
        yield (
            f'<circle class="{"bar" if layer.ok else "bad"}" cx="{x}" cy="{y}" r="3.5">'
            f"<title>{about}</title></circle>"
        )
        if layer is found.first_wrong:
            yield named_point(x, y, text(layer.node))


def _share(layer: Layer) -> float:
    """Return the height of the largest error; the top if it is not comparable."""
    error = layer.row.difference.max_abs
    return error_share(error, is_comparable=layer.ok or bool(error))
