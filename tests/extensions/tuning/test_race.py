"""Races: what a few rounds say, what a test proves, and when measuring ends."""

import math
from collections.abc import Sequence
from typing import Any

import pytest

from tests.extensions.tuning.fakes import O2, O3, FakeMachine, cost_of
from tiered.extensions.measurement.medians import MedianInterval
from tiered.extensions.tuning.log import Log
from tiered.extensions.tuning.model_forms import Made, ModelForm
from tiered.extensions.tuning.race import (
    FASTER,
    FEWEST,
    LOOKS,
    ROUNDS,
    SLOWER,
    TOGETHER,
    UNDECIDED,
    USEFUL,
    Gain,
    Race,
    _gain,
    _is_open,
    _is_unclear,
    _spread,
    exact_gain,
    is_undecided,
    reason_of,
    same,
    tested as verdict_of,
    width_for,
)
from tiered.support.errors import RuntimeFailure

NONE = "no difference"


@pytest.mark.parametrize(("nbytes", "width"), [(0, 6), (1 << 20, 6), (1 << 29, 3), (1 << 33, 1)])
def test_of_large_forms_few_are_open_together(nbytes: int, width: int) -> None:
    assert width_for(Made(O3, "a.onnx", "a", nbytes, 1)) == width


def made(form: ModelForm, nbytes: int = 10) -> Made:
    return Made(form, "p", str(form), nbytes, 1)


def without(*names: str) -> Made:
    return made(ModelForm(3, disabled=names))


REFERENCE = made(O3)


class Exact(FakeMachine):
    is_exact = True


class Listed:
    """A judge with the costs of each round in a list."""

    is_exact = False

    def __init__(self, rounds: Sequence[Sequence[float]]) -> None:
        self.rounds, self.asked = rounds, 0

    def costs(self, forms: Sequence[Made], number: int, *, apart: bool) -> list[float]:
        self.asked += 1
        return [*self.rounds[number % len(self.rounds)][: len(forms)]]


def race(judge: Any, over: int = 10**9) -> Race:
    """Return a race that has time for so many questions."""
    left = [over]

    def is_over() -> bool:
        left[0] -= 1
        return left[0] < 0

    return Race(Log(judge, None, {}), is_over)


def test_the_constants_are_those_of_the_method() -> None:
    assert (TOGETHER, FEWEST, ROUNDS, USEFUL) == (6, 4, 12, 0.004)
    assert LOOKS == (10, 14, 20, 32, 56)


# --- screening ------------------------------------------------------------------------------------


def test_what_is_clearly_better_worse_or_equal_is_told() -> None:
    machine = FakeMachine(cost_of({"good": -0.05, "bad": 0.05}), 0.001)
    forms = [without("good"), without("bad"), without("equal")]
    found = race(machine).screen("a", REFERENCE, forms)
    assert [found[form].verdict for form in forms] == [FASTER, SLOWER, NONE]
    assert found[forms[0]].ratio.median == pytest.approx(math.exp(-0.05), rel=0.01)
    assert found[forms[0]].is_better
    assert not found[forms[1]].is_better


def test_what_is_no_better_is_dropped_after_the_fewest_rounds() -> None:
    machine = FakeMachine(cost_of({"bad": 0.5}), 0.001)
    found = race(machine).screen("a", REFERENCE, [without("bad")])
    assert found[without("bad")].rounds == FEWEST
    assert len(machine.rounds) == FEWEST


def test_what_seems_better_is_measured_for_a_little_longer() -> None:
    machine = FakeMachine(cost_of({"good": -0.5}), 0.001)
    found = race(machine).screen("a", REFERENCE, [without("good")])
    # From the sixth round on it is clear.
    assert found[without("good")].rounds == FEWEST + 2


def test_a_reference_and_forms_that_are_there_twice_are_measured_once() -> None:
    machine = FakeMachine(cost_of({}))
    found = race(machine).screen("a", REFERENCE, [REFERENCE, without("a"), without("a")])
    assert set(found) == {without("a")}
    assert {len(names) for names in machine.rounds} == {2}
    assert race(machine).screen("a", REFERENCE, [REFERENCE]) == {}


def test_forms_are_measured_six_at_a_time() -> None:
    machine = FakeMachine(cost_of({}))
    forms = [without(f"n{at}") for at in range(8)]
    assert set(race(machine).screen("a", REFERENCE, forms)) == set(forms)
    assert len(machine.rounds[0]) == 7
    assert {len(names) for names in machine.rounds} <= {7, 3}


def test_only_the_best_drops_what_is_worse_than_another_form() -> None:
    effects = {"best": -0.5, "good": -0.3}
    for only_best, rounds in ((True, FEWEST), (False, FEWEST + 2)):
        machine = FakeMachine(cost_of(effects), 0.001)
        found = race(machine).screen(
            "a", REFERENCE, [without("best"), without("good")], only_best=only_best
        )
        assert found[without("good")].rounds == rounds


def test_both_ways_measures_until_better_or_worse_is_clear() -> None:
    rounds = [[0.0, 0.03], [0.0, -0.03], [0.0, 0.01], [0.0, -0.01]]
    judge = Listed(rounds)
    race(judge).screen("a", REFERENCE, [without("a")], both_ways=True)
    assert judge.asked == ROUNDS
    clear = Listed([[0.0, 0.5]])
    race(clear).screen("a", REFERENCE, [without("a")], both_ways=True)
    assert clear.asked == FEWEST


def test_without_time_what_is_known_is_told() -> None:
    machine = FakeMachine(cost_of({"good": -0.05}), 0.001)
    found = race(machine, over=2).screen("a", REFERENCE, [without("good")])
    assert found[without("good")].rounds == 2
    assert race(machine, over=0).screen("b", REFERENCE, [without("good")]) == {}


def test_costs_without_noise_take_one_round() -> None:
    machine = Exact(cost_of({"good": -0.05, "bad": 0.5}))
    found = race(machine).screen("a", REFERENCE, [without("good"), without("bad"), without("x")])
    assert [gain.verdict for gain in found.values()] == [FASTER, SLOWER, NONE]
    assert len(machine.rounds) == 1


def test_a_form_that_fails_is_dropped_and_the_others_are_measured() -> None:
    machine = FakeMachine(cost_of({"good": -0.05}), 0.001, broken=["broken"])
    own = race(machine)
    found = own.screen("a", REFERENCE, [without("broken"), without("good")])
    assert set(found) == {without("good")}
    assert set(own.failures) == {without("broken")}
    assert "cannot load" in own.failures[without("broken")]


def test_a_reference_that_fails_is_an_error() -> None:
    machine = FakeMachine(cost_of({}), broken=["broken"])
    with pytest.raises(RuntimeFailure, match="cannot load"):
        race(machine).screen("a", without("broken"), [without("a")])
    with pytest.raises(RuntimeFailure, match="cannot load"):
        race(machine).prove("a", without("a"), without("broken"))


# --- tests ----------------------------------------------------------------------------------------


def test_a_proof_takes_the_rounds_of_the_first_look_that_decides() -> None:
    machine = FakeMachine(cost_of({"good": -0.05}), 0.001)
    gain = race(machine).prove("a", without("good"), REFERENCE)
    assert gain is not None
    assert (gain.verdict, gain.rounds) == (FASTER, LOOKS[0])
    assert gain.ratio.high < 1
    assert gain.ratio.confidence >= 0.998


def test_a_form_is_no_better_than_itself() -> None:
    machine = FakeMachine(cost_of({}))
    assert race(machine).prove("a", REFERENCE, REFERENCE) == same()
    assert same() == Gain(MedianInterval(1.0, 1.0, 1.0, 1.0), 0, NONE)
    assert machine.rounds == []


def test_a_form_that_fails_in_its_proof_is_named() -> None:
    own = race(FakeMachine(cost_of({}), broken=["broken"]))
    assert own.prove("a", without("broken"), REFERENCE) is None
    assert set(own.failures) == {without("broken")}


def test_without_time_there_is_no_proof() -> None:
    machine = FakeMachine(cost_of({"good": -0.05}), 0.001)
    assert race(machine, over=9).prove("a", without("good"), REFERENCE) is None
    assert race(machine, over=10).prove("b", without("good"), REFERENCE) is not None


def test_processes_apart_have_their_first_look_all_the_same() -> None:
    machine = FakeMachine(cost_of({"good": -0.05}), 0.001)
    forms = [without("good"), REFERENCE]
    found = race(machine, over=0).compare("a", forms, [(0, 1)], apart=True)
    assert found[0, 1].verdict == FASTER
    assert len(machine.rounds) == LOOKS[0]


def test_each_pair_has_its_verdict() -> None:
    machine = FakeMachine(cost_of({"good": -0.05}), 0.001)
    forms = [without("good"), REFERENCE, made(O2)]
    found = race(machine).compare("a", forms, [(0, 1), (1, 0), (2, 1)])
    assert {pair: gain.verdict for pair, gain in found.items()} == {
        (0, 1): FASTER, (1, 0): SLOWER, (2, 1): SLOWER
    }  # fmt: skip
    exact = race(Exact(cost_of({"good": -0.05}))).compare("a", forms, [(0, 1), (2, 1)])
    assert [gain.verdict for gain in exact.values()] == [FASTER, SLOWER]


@pytest.mark.parametrize(
    ("difference", "is_last", "verdict"),
    [(-0.05, False, FASTER), (0.05, False, SLOWER), (-0.001, True, FASTER), (0.0, False, NONE)],
)
def test_rounds_that_agree_decide(difference: float, verdict: str, *, is_last: bool) -> None:
    gain = verdict_of([difference] * 10, is_last=is_last)
    assert gain is not None
    assert (gain.verdict, gain.rounds) == (verdict, 10)


def test_rounds_that_do_not_agree_go_on_until_the_last_look() -> None:
    mixed = [-0.1, 0.02] * 5
    assert verdict_of(mixed, is_last=False) is None
    last = verdict_of(mixed, is_last=True)
    assert last is not None
    assert last.verdict == NONE


def test_too_few_rounds_prove_nothing() -> None:
    few = verdict_of([-0.5] * 3, is_last=True)
    assert few is not None
    assert few.verdict == NONE


def test_a_gain_that_does_not_count_ends_a_test() -> None:
    small = [-0.002, 0.002] * 5
    gain = verdict_of(small, is_last=False)
    assert gain is not None
    assert gain.verdict == NONE


@pytest.mark.parametrize(
    ("gain", "expected"),
    [
        (None, True),
        (Gain(MedianInterval(0.9, 0.95, 1.1, 0.99), 10, NONE), True),
        (Gain(MedianInterval(0.9, 0.95, 1.1, 0.99), LOOKS[-2], NONE), True),
        (Gain(MedianInterval(0.9, 0.95, 1.1, 0.99), LOOKS[-1], NONE), False),
        (Gain(MedianInterval(0.9, 0.95, 1.1, 0.99), 1, NONE), True),
        (Gain(MedianInterval(0.9, 0.95, 1.1, 0.99), 0, NONE), False),
        (Gain(MedianInterval(0.9, 0.95, 0.99, 0.99), 10, FASTER), False),
        (Gain(MedianInterval(0.9, 1.0, 1.1, 0.99), 10, NONE), False),
        (Gain(MedianInterval(1 - USEFUL, 0.999, 1.1, 0.99), 10, NONE), False),
    ],
)
def test_a_test_that_was_cut_short_speaks_against_nothing(
    gain: Gain | None, *, expected: bool
) -> None:
    assert is_undecided(gain) == expected


def test_reasons_for_readers() -> None:
    assert reason_of(None) == "no time was left to prove it"
    assert reason_of(same()) == NONE


@pytest.mark.parametrize(("difference", "verdict"), [(-0.1, FASTER), (0.1, SLOWER), (0.0, NONE)])
def test_exact_costs_are_compared_as_they_are(difference: float, verdict: str) -> None:
    gain = exact_gain(difference)
    ratio = math.exp(difference)
    assert gain == Gain(MedianInterval(ratio, ratio, ratio, 1.0), 1, verdict)


@pytest.mark.parametrize(
    ("nbytes", "width"),
    [(0, 6), (1, 6), ((1 << 31) // 7, 6), ((1 << 31) // 7 + 1, 5), (1 << 30, 1), (1 << 31, 1),
     (1 << 40, 1)],
)  # fmt: skip
def test_so_many_forms_fit_into_two_gibibytes(nbytes: int, width: int) -> None:
    assert width_for(made(O3, nbytes)) == width


def test_a_few_rounds_may_leave_it_open() -> None:
    judge = Listed([[0.0, -0.01], [0.0, 0.01], [0.0, -0.02]])
    found = race(judge, over=3).screen("a", REFERENCE, [without("a")])
    assert found[without("a")].verdict == UNDECIDED


class Named(Listed):
    """A judge with the costs of the forms without a, b and c in lists."""

    def costs(self, forms: Sequence[Made], number: int, *, apart: bool) -> list[float]:
        costs = super().costs([REFERENCE] * 3, number, apart=apart)
        return [costs["abc".index(form.form.disabled[0])] if form.form.disabled else 0.0
                for form in forms]  # fmt: skip


def told(kind: str, rounds: Sequence[Sequence[float]], over: int, **more: bool) -> str:
    """Return what a race says of forms whose rounds cost more than the reference by this."""
    judge = Named(rounds)
    own, forms = race(judge, over), [without(name) for name in "abc"[: len(rounds[0])]]
    found: list[tuple[str, Gain | None]]
    if kind == "screen":
        gains = own.screen("s", REFERENCE, forms, **more)
        found = [(form.form.disabled[0], gain) for form, gain in gains.items()]
    else:
        pairs = [(at + 1, 0) for at in range(len(forms))]
        compared = own.compare("s", [REFERENCE, *forms], pairs, **more)
        found = [("abc"[pair[0] - 1], gain) for pair, gain in compared.items()]
    said = [
        f"{name} {gain.verdict} after {gain.rounds}, {gain.ratio.low:.3f} to {gain.ratio.high:.3f}"
        for name, gain in found if gain is not None
    ]  # fmt: skip
    return "; ".join([*said, f"{judge.asked} asked"])


def test_what_a_race_says_after_how_many_rounds() -> None:
    for kind, rounds, over, more, expected in (
        ("compare", [[-0.01, -0.008]], 99, {"apart": True},
         "a better after 10, 0.990 to 0.990; b better after 10, 0.992 to 0.992; 10 asked"),
        ("compare", [[-0.02], [-0.004], [0.0]], 10, {},
         "a no difference after 10, 0.980 to 1.000; 10 asked"),
        ("compare", [[-0.004], [0.0]], 99, {}, "a better after 56, 0.998 to 0.998; 56 asked"),
        ("screen", [[-0.008, 0.0], [0.05, 0.004]], 99, {},
         "a no difference after 4, 0.998 to 1.045; b undecided after 12, 0.989 to 1.015; 12 asked"),
        ("compare", [[-0.02], [0.004]], 10, {"apart": True},
         "a no difference after 20, 0.980 to 1.004; 20 asked"),
        ("compare", [[-0.05, 0.008], [0.01, -0.002]], 99, {},
         "b no difference after 10, 0.998 to 1.008; a better after 56, 0.980 to 0.980; 56 asked"),
        ("screen", [[0.004, 0.0, -0.002]], 99, {"both_ways": True},
         "a worse after 4, 1.004 to 1.004; b no difference after 12, 1.000 to 1.000; "
         "c better after 4, 0.998 to 0.998; 12 asked"),
        ("screen", [[-0.004], [0.02], [-0.004], [0.0]], 2, {},
         "a undecided after 2, 0.983 to 1.034; 2 asked"),
        ("screen", [[-0.004, 0.004, -0.05], [0.0, 0.0, 0.0], [-0.02, 0.01, 0.01],
                    [0.0, 0.05, -0.01]], 11, {"only_best": True},
         "a undecided after 11, 0.992 to 1.000; b no difference after 4, 1.000 to 1.015; "
         "c better after 9, 0.985 to 0.995; 11 asked"),
    ):  # fmt: skip
        assert told(kind, rounds, over, **more) == expected, (kind, rounds, over, more)


class Together(Listed):
    """A judge that fails after some rounds, where a form is among several."""

    def __init__(self, good: int) -> None:
        super().__init__([[0.0, -0.1, -0.1]])
        self._good = good

    def costs(self, forms: Sequence[Made], number: int, *, apart: bool) -> list[float]:
        if len(forms) > 1 and self.asked >= self._good:
            raise RuntimeFailure("no memory")
        return super().costs(forms, number, apart=apart)


def test_forms_that_fail_only_side_by_side_are_an_error() -> None:
    with pytest.raises(RuntimeFailure, match="no memory"):
        race(Together(0)).screen("a", REFERENCE, [without("a"), without("b")])
    with pytest.raises(RuntimeFailure, match="no memory"):
        race(Together(0)).prove("a", without("a"), REFERENCE)


def test_a_form_that_fails_after_some_rounds_has_no_gain() -> None:
    class Late(FakeMachine):
        def costs(self, forms: Sequence[Made], number: int, *, apart: bool) -> list[float]:
            if len(self.rounds) > 2 and any("late" in form.form.disabled for form in forms):
                raise RuntimeFailure("it is lost")
            return super().costs(forms, number, apart=apart)

    own = race(Late(cost_of({"late": -0.1, "good": -0.1}), 0.001))
    assert set(own.screen("a", REFERENCE, [without("late"), without("good")])) == {without("good")}
    assert own.failures == {without("late"): "it is lost"}


def test_rounds_that_are_known_take_no_time() -> None:
    log, forms = Log(FakeMachine(cost_of({"good": -0.05}), 0.001), None, {}), [without("good")]
    for is_over in (False, True):
        own = Race(log, lambda over=is_over: over)  # type: ignore[misc]  # a default
        assert own.screen("a", REFERENCE, forms)[forms[0]].rounds == FEWEST + 2
        assert own.compare("b", [*forms, REFERENCE], [(0, 1)])[0, 1].rounds == LOOKS[0]


def test_the_gain_of_exact_costs_has_no_interval() -> None:
    found = race(Exact(cost_of({"good": -0.05}))).screen("a", REFERENCE, [without("good")])
    assert found == {without("good"): exact_gain(-0.05)}


def test_limits_of_screening_are_part_of_what_is_open() -> None:
    assert _spread([[5.0], [0.0, 1.0]]) == 1.4826 * 0.5
    assert _is_open([-USEFUL] * FEWEST, 0.0)
    error = 2.0 / math.sqrt(6)
    assert _is_open([-error] * 6, 1.0)  # up to 0
    assert not _is_open([-error - 0.001] * 6, 1.0)
    assert _is_unclear([0.0], 0.0)
    assert [_gain([middle], 0.001).verdict for middle in (-0.002, 0.0, 0.002)] == [
        UNDECIDED, NONE, NONE
    ]  # fmt: skip
    assert _gain([0.0], 0.0).verdict == NONE
