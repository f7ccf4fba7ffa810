"""What no domain proves is run: both sides, on values that are made for the borders."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tiered import Model
from tiered.certify.evaluation.values import Unproved
from tiered.certify.problem import Border, Given, Problem
from tiered.certify.regions.whole import whole_problem
from tiered.certify.trial_runs import model_of, run_both
from tiered.certify.trial_sizes import TrialSizes
from tiered.runtime import run
from tiered.support.numerics import Numerics, Promise
from tiered.testing import parse

HEAD = "(float[N] x, float[N] z) => (float[N] y)"
EXACT = Promise(Numerics.EXACT)


def problem(before: str, after: str, head: str = HEAD) -> Problem:
    models = [Model.from_proto(parse(f"{head} {{ {text} }}")) for text in (before, after)]
    return whole_problem(*models)


def test_sides_that_agree_ran() -> None:
    found = run_both(problem("y = Add(x, z)", "y = Add(z, x)"), EXACT)
    assert found.ok
    assert set(found.feeds) == {"x", "z"}
    assert found.sizes == {"N": 2}
    assert found.feeds["x"].shape == (2,)
    assert [output.name for output in found.comparison.outputs] == ["result y"]


def test_sides_that_differ_have_the_inputs_that_show_it() -> None:
    found = run_both(problem("y = Sub(x, z)", "y = Sub(z, x)"), EXACT)
    assert not found.ok
    assert not np.array_equal(
        found.feeds["x"] - found.feeds["z"], found.feeds["z"] - found.feeds["x"]
    )


def test_the_promise_judges() -> None:
    given = problem("a = Add(x, z)  y = Mul(a, x)", "a = Mul(x, x)  b = Mul(z, x)  y = Add(a, b)")
    assert run_both(given, Promise(Numerics.REASSOCIATING)).ok


def test_other_sizes_are_tried_where_some_do_not_run() -> None:
    """With the first sizes, which are 2 and 3, no model takes the operands."""
    head = "(float[N] x, float[M] z) => (float[K] y)"
    given = problem("y = Add(x, z)", "y = Add(z, x)", head)
    sizes = (TrialSizes((2, 3), 3), TrialSizes((4, 4), 3))
    found = run_both(replace(given, sizes=sizes), EXACT)
    assert found.ok
    assert found.sizes == {"M": 4, "N": 4}
    with pytest.raises(Unproved, match="does not run by itself: "):
        run_both(replace(given, sizes=sizes[:1]), EXACT)
    with pytest.raises(Unproved, match="does not run by itself: no sizes were tried"):
        run_both(replace(given, sizes=()), EXACT)


class Known(Given):
    """The first border is known."""

    def at(self, sizes: TrialSizes) -> Mapping[str, Any]:
        return {"x": np.array([7, 8], np.float32)}


def test_known_borders_have_their_values() -> None:
    given = replace(problem("y = Add(x, z)", "y = Add(z, x)"), given=Known())
    assert run_both(given, EXACT).feeds["x"].tolist() == [7, 8]


def test_without_outputs_nothing_is_compared() -> None:
    given = problem("y = Add(x, z)", "y = Add(z, x)")
    none = replace(given, outputs=())
    with pytest.raises(Unproved, match="nothing could be compared"):
        run_both(none, EXACT)


def test_without_samples_nothing_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tiered.certify.trial_runs.samples_for", lambda *_: [])
    with pytest.raises(Unproved, match="nothing could be compared"):
        run_both(problem("y = Add(x, z)", "y = Add(z, x)"), EXACT)


def test_a_side_is_a_model_of_its_own() -> None:
    given = problem("y = Mul(x, k)", "y = Mul(k, x)", HEAD.replace("y)", "y) <float k = {3}>"))
    made = model_of(given, given.sides[0], TrialSizes((4,), 3))
    assert {info.name for info in made.graph.input} <= {"x", "z"}
    assert [tensor.name for tensor in made.graph.initializer] == ["k"]
    assert [info.name for info in made.graph.output] == ["result y"]
    assert [(each.domain, each.version) for each in made.opset_import] == [("", 21)]
    feeds = {info.name: np.array([1, 2, 3, 4], np.float32) for info in made.graph.input}
    assert run(made, feeds)["result y"].tolist() == [3, 6, 9, 12]


def test_an_output_may_be_a_border_or_a_constant() -> None:
    given = replace(problem("y = Add(x, z)", "y = Add(z, x)"), outputs=("x", "y"))
    made = model_of(given, given.sides[0], TrialSizes((1,), 3))
    found = run(made, {"x": np.array([2], np.float32), "z": np.array([3], np.float32)})
    assert (found["result x"], found["result y"]) == (2, 5)


def test_a_border_without_a_shape_cannot_be_fed() -> None:
    given = problem("y = Add(x, z)", "y = Add(z, x)")
    borders = {**given.borders, "x": Border(1, (None,))}
    with pytest.raises(Unproved, match="no shape of x is known"):
        model_of(replace(given, borders=borders), given.sides[0], TrialSizes((1,), 3))
