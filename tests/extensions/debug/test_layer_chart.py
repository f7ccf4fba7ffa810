"""The chart of the error of each layer: places, powers of ten, and the first wrong one."""

import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tiered.extensions.debug import layers_svg


def layer(place: int, max_abs: float, *, ok: bool = True, name: str = "", reason: str = "") -> Any:
    difference = SimpleNamespace(max_abs=max_abs, reason=reason)
    return SimpleNamespace(
        place=place, node=name or f"n{place}", op_type="Neg", ok=ok,
        row=SimpleNamespace(difference=difference),
    )  # fmt: skip


def chart(*layers: Any, first: Any = None, title: str = "") -> str:
    found: Any = SimpleNamespace(layers=layers, first_wrong=first, numerics="exact")
    return layers_svg(found, title)


def points(text: str) -> list[tuple[float, float]]:
    (found,) = re.findall(r'class="curve" points="([^"]*)"', text)
    return [(float(x), float(y)) for x, y in (pair.split(",") for pair in found.split())]


def test_layers_are_from_left_to_right_by_their_place() -> None:
    text = chart(layer(0, 0.0), layer(5, 0.0), layer(10, 0.0))
    # From 72 to 16 before the width of 960.
    assert [x for x, _ in points(text)] == [72, 508, 944]


def test_one_layer_is_in_the_middle() -> None:
    assert points(chart(layer(0, 0.0))) == [(508, 224)]
    assert points(chart()) == []


@pytest.mark.parametrize(
    ("max_abs", "power"),
    [(0.0, -9), (1e-12, -9), (1e-9, -9), (1e-3, -3), (1.0, 0), (1e3, 3), (1e9, 3),
     (np.inf, 3), (np.nan, 3)],
)  # fmt: skip
def test_errors_are_drawn_by_their_power_of_ten(max_abs: float, power: float) -> None:
    # From 224 at 1e-9 up to 24 at 1e3.
    ((_, y),) = points(chart(layer(0, max_abs)))
    assert y == pytest.approx(224 - 200 * (power + 9) / 12, abs=0.06)


def test_what_cannot_be_compared_is_at_the_top() -> None:
    ((_, top),) = points(chart(layer(0, 0.0, ok=False, reason="shapes differ")))
    assert top == 24


def test_the_grid_has_a_line_for_each_thousandfold() -> None:
    text = chart()
    labels = re.findall(r'text-anchor="end">([^<]+)</text>', text)
    assert labels == ["0", "1e-6", "1e-3", "1e0", "1e3"]
    lines = re.findall(r'class="grid" x1="72" y1="([\d.]+)"', text)
    assert [float(y) for y in lines] == [224, 174, 124, 74, 24]


def test_wrong_layers_are_red_and_say_why() -> None:
    text = chart(layer(0, 0.25), layer(1, 0.5, ok=False, name="<a>", reason="2 > 1"))
    titles = re.findall(r'<circle class="(\w+)"[^>]*>\n?<title>([^<]*)</title>', text)
    assert titles == [
        ("bar", "n0 (Neg): max abs 2.5e-01"),
        ("bad", "&lt;a&gt; (Neg): max abs 5.0e-01; 2 &gt; 1"),
    ]


@pytest.mark.parametrize(
    ("place", "x", "anchor"), [(0, "80.0", "start"), (2, "936.0", "end"), (1, "500.0", "end")]
)
def test_the_first_wrong_one_has_its_name_on_the_side_with_room(
    place: int, x: str, anchor: str
) -> None:
    layers = [layer(at, 1.0, ok=at != place) for at in range(3)]
    text = chart(*layers, first=layers[place])
    assert f'<text class="bad" x="{x}" y="78.0" text-anchor="{anchor}">n{place}</text>' in text
    assert text.count('<text class="bad"') == 1


def test_the_title_says_what_is_allowed_unless_it_is_given() -> None:
    assert "largest error of each layer, allowed: exact" in chart()
    text = chart(title="a < b")
    assert "a &lt; b" in text
    assert "allowed" not in text
