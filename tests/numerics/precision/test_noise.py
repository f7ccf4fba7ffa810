"""The signal to noise ratio: of arrays, of a model's outputs, and as a budget has it."""

import math
from collections.abc import Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from tiered.numerics.precision import noise
from tiered.numerics.precision.budget import budget_of
from tiered.numerics.precision.noise import FloatReference, Noise
from tiered.testing import parse

INF, NAN = math.inf, math.nan


@pytest.mark.parametrize(
    ("exact", "found", "decibels"),
    [
        ([3.0, 4.0], [3.0, 4.5], 20.0),  # 25 / 0.25
        ([1.0, 0.0], [1.0, 0.0], INF),
        ([0.0], [0.0], INF),
        ([0.0], [1.0], -INF),
        ([NAN, 3.0, 4.0], [0.0, 3.0, 4.5], 20.0),  # only what is finite counts
        ([INF, 3.0, 4.0], [0.0, 3.0, 4.5], 20.0),
        ([1e30, 3.0, 4.0], [0.0, 3.0, 4.5], 20.0),
        ([3.0], [NAN], -INF),
        ([3.0], [INF], -INF),
        ([INF], [0.0], INF),
    ],
)
def test_the_ratio_is_that_of_the_energies(
    exact: list[float], found: list[float], decibels: float
) -> None:
    of = Noise()
    of.add(np.array(exact, np.float32), np.array(found, np.float32))
    assert of.decibels == pytest.approx(decibels)


def test_arrays_add_up() -> None:
    of = Noise()
    of.add(np.array([3.0]), np.array([3.5]))
    of.add(np.array([4.0]), np.array([4.0]))
    assert of.decibels == pytest.approx(20)


def test_each_product_alone_is_beside_the_exact_one_in_whatever_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Sampled:
        def __init__(self, probe: Any, folder: str) -> None:
            self.names = [node.output[0] for node in probe.graph.node]

        def __enter__(self) -> Any:
            return self

        def __exit__(self, *error: object) -> None:
            pass

        def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
            return {}

        def stream(self, feeds: Mapping[str, Any], names: set[str]) -> Any:
            assert self.names == ["y", "n", "y/quantised alone"]
            assert names == {"y", "y/quantised alone"}
            exact, found = np.array([3, 4], np.float32), np.array([3, 4.5], np.float32)
            pair = [("y", exact), ("y/quantised alone", found)]
            return pair if feeds["x"][0] else pair[::-1]

    monkeypatch.setattr(noise, "SampledModel", Sampled)
    proto = parse(TEXT)
    for feeds in (FEEDS[:1], FEEDS[1:]):
        found = FloatReference(proto, "", feeds).alone(proto, ["y"])
        assert found == {"y": pytest.approx(20)}


def test_outputs_of_floats_have_a_ratio() -> None:
    found = {"y": np.zeros(1, np.float32), "n": np.zeros(1, np.int64), "s": [np.zeros(1)]}
    assert list(noise._floats(found)) == ["y"]


TEXT = "(float[2] x) => (float[2] y, int64[1] n) { y = Neg(x)  n = Shape(x) }"
FEEDS = [{"x": np.array([3, 4], np.float32)}, {"x": np.array([0, 5], np.float32)}]


class Running:
    """A model that is off by a number."""

    def __init__(self, by: float) -> None:
        self.by = by

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        return {"y": -feeds["x"] + np.float32(self.by), "n": np.array([2])}


@pytest.fixture
def deployed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The settings of the models that run as they are deployed; each is off by 0.5."""
    settings: list[str] = []

    @contextmanager
    def opened(worker: Any, proto: Any, *, folder: str, setting: str) -> Any:
        settings.append(setting)
        yield Running(0.5)

    monkeypatch.setattr(noise, "open_model", opened)
    return settings


def test_a_model_is_measured_as_it_is_written_or_as_it_is_deployed(deployed: list[str]) -> None:
    proto = parse(TEXT)
    reference, budget = FloatReference(proto, "", FEEDS), budget_of("max_abs<=1")
    assert reference.metric(proto, budget) == 0
    assert reference.decibels(proto) == INF
    assert reference.differing(proto) == 0
    assert deployed == []
    assert reference.metric(proto, budget, is_deployed=True) == 0.5
    assert reference.deployed(proto) == pytest.approx(10 * math.log10(50 / 1.0))  # both samples
    assert deployed == ["default"] * 2


def test_shapes_are_those_of_the_first_sample() -> None:
    proto = parse(TEXT)
    assert FloatReference(proto, "", FEEDS).shapes(["y", "n"]) == {"y": (2,), "n": (1,)}


def test_an_integer_has_no_ratio() -> None:
    proto = parse("(float[2] x) => (int64[1] n) { n = Shape(x) }")
    reference = FloatReference(proto, "", FEEDS)
    assert reference.decibels(proto) is None
    assert reference.differing(proto) == 0
