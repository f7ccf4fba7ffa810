"""The search: what it takes, what it rejects, and why; the measurements are made up."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest

from tests.extensions.tuning.fakes import (
    O3,
    ORIGINAL,
    STARTS,
    FakeMachine,
    FakeWorkshop,
    cost_of,
    searched,
    without,
)
from tiered.extensions.tuning.cache import GainCache
from tiered.extensions.tuning.found import Found
from tiered.extensions.tuning.log import Log
from tiered.extensions.tuning.model_forms import Choice, Made, ModelForm
from tiered.extensions.tuning.search import Search
from tiered.support.errors import RuntimeFailure

EFFECTS = {"good": -0.05, "bad": 0.05}
GOOD, BAD, IDLE = without("good"), without("bad"), without("idle")
ONE_CLASS = Choice("without mixed at a and 11 equal blocks", disabled=("mixed@'a|b'",))
ALL_CLASSES = without("mixed")


def reasons(found: Found) -> dict[str, str]:
    return {each.text: each.reason for each in found.tried}


def test_what_helps_is_taken_and_the_rest_is_not() -> None:
    found = searched(FakeWorkshop([GOOD, BAD, IDLE]), FakeMachine(cost_of(EFFECTS), 0.01))
    assert found.best == ModelForm(3, disabled=("good",))
    assert found.choices == [GOOD]
    assert reasons(found)["without bad"] == "worse"
    assert found.beside_reference is not None
    assert found.beside_reference.ratio.median == pytest.approx(0.951, abs=0.02)
    assert found.beside_original is not None
    assert found.beside_original.verdict == "better"
    assert found.is_confirmed


@pytest.mark.parametrize("bursts", [0.0, 0.05])
def test_planted_decisions_are_found_or_rejected_in_19_of_20(bursts: float) -> None:
    # Right and 3 % slower; right, and 3 % faster on one class of layers, 3 % slower on the others.
    effects = {"slow": 0.03, "mixed@'a|b'": -0.03, "mixed": 0.01}
    choices = [without("slow"), ALL_CLASSES, ONE_CLASS, IDLE, without("idle2")]
    outcomes = Counter(
        searched(
            FakeWorkshop(choices),
            FakeMachine(cost_of(effects), noise=0.015, seed=seed, bursts=bursts),
        ).best.disabled
        for seed in range(20)
    )
    right = sum(
        count for names, count in outcomes.items()
        if "mixed@'a|b'" in names and "slow" not in names and "mixed" not in names
    )  # fmt: skip
    assert right >= 19, outcomes


def test_what_makes_no_difference_is_the_reference_in_19_of_20() -> None:
    choices = [without(f"idle{number}") for number in range(12)]
    bests = [
        searched(FakeWorkshop(choices), FakeMachine(cost_of({}), noise=0.03, seed=seed)).best
        for seed in range(20)
    ]
    assert sum(best == O3 for best in bests) >= 19


def test_a_better_start_becomes_the_base() -> None:
    starts = (*STARTS, ModelForm(3, "onnxruntime_cpu"))
    effects = {"onnxruntime_cpu": -0.1, "good": -0.05}
    found = searched(FakeWorkshop([GOOD]), FakeMachine(cost_of(effects), 0.01), starts)
    assert found.best == ModelForm(3, "onnxruntime_cpu", disabled=("good",))


def test_without_time_for_a_proof_the_confirmation_is_one() -> None:
    starts, effects = (*STARTS, ModelForm(3, "onnxruntime_cpu")), {"onnxruntime_cpu": -0.1}
    machine = FakeMachine(cost_of(effects), 0.01)
    found = searched(FakeWorkshop([GOOD]), machine, starts,
                     elapsed=lambda: 0.0 if len(machine.rounds) < 8 else 0.95)  # fmt: skip
    assert found.best == ModelForm(3, "onnxruntime_cpu")
    assert reasons(found)["-O3 --backend onnxruntime_cpu"] == "better, to be confirmed"
    assert found.beside_reference is not None


def test_a_proof_is_kept_where_the_confirmation_lacks_time() -> None:
    class Noisy(FakeMachine):
        def costs(self, forms: Sequence[Made], number: int, *, apart: bool) -> list[float]:
            self._noise = 0.15 if apart else 0.005
            return super().costs(forms, number, apart=apart)

    bests = []
    for seed in range(8):
        machine = Noisy(cost_of(EFFECTS), seed=seed)
        found = searched(FakeWorkshop([GOOD]), machine,
                         elapsed=lambda: 0.0 if len(machine.rounds) < 24 else 2.0)  # fmt: skip  # noqa: B023 - called at once
        gain = found.beside_reference
        bests.append(found.best)
        if found.best.disabled:
            assert gain is not None
            assert gain.ratio.median < 1
            assert gain.is_better or "proved before; the time was over" in [
                each.reason for each in found.tried
            ]
    assert ModelForm(3, disabled=("good",)) in bests


def test_what_is_not_proved_is_not_kept_by_an_interruption() -> None:
    starts, effects = (*STARTS, ModelForm(3, "onnxruntime_cpu")), {"onnxruntime_cpu": -0.1}
    machine = FakeMachine(cost_of(effects), 0.01, interrupt=lambda number: number > 9)
    search = Search(
        FakeWorkshop([GOOD]), Log(machine, None, {}), starts, O3,
        lambda: 0.0 if len(machine.rounds) < 8 else 0.95,
    )  # fmt: skip
    with pytest.raises(KeyboardInterrupt):
        search.run()
    search.settle()
    assert search.found.best == O3


def test_the_original_wins_where_it_is_better() -> None:
    found = searched(FakeWorkshop(), FakeMachine(cost_of({}, original=-0.1), 0.01))
    assert found.best == ORIGINAL
    assert found.notes == ["as it is is better than every form that was found"]


def test_decisions_are_added_to_the_reference_even_if_the_original_seems_better() -> None:
    found = searched(
        FakeWorkshop([GOOD]), FakeMachine(cost_of({"good": -0.2}, original=-0.1), 0.01)
    )
    assert found.best == ModelForm(3, disabled=("good",))


def test_a_candidate_of_the_user_may_win() -> None:
    candidate = ModelForm(None, file="peer.onnx")
    effects = {"peer.onnx": -0.1}
    found = searched(FakeWorkshop(), FakeMachine(cost_of(effects), 0.01), (*STARTS, candidate))
    assert found.best == candidate
    again = ModelForm(3, file="peer.onnx")
    found = searched(FakeWorkshop(), FakeMachine(cost_of({}), 0.01), (*STARTS, again))
    assert "peer.onnx -O3" in reasons(found)
    wrong = FakeWorkshop(faults={"peer.onnx": "output y differs"})
    found = searched(wrong, FakeMachine(cost_of(effects), 0.01), (*STARTS, candidate))
    assert found.best == O3


def test_gains_add_up() -> None:
    others = [without(f"g{number}") for number in range(8)]
    effects = {f"g{number}": -0.02 for number in range(8)}
    found = searched(FakeWorkshop(others), FakeMachine(cost_of(effects), 0.004))
    assert set(found.best.disabled) == set(effects)


def test_what_does_not_go_together_is_tried_one_by_one() -> None:
    effects = {"a": -0.08, "b": -0.04}
    plain = cost_of(effects)

    def cost(form: ModelForm) -> float:
        return plain(form) + (0.3 if {"a", "b"} <= {*form.disabled} else 0)

    found = searched(FakeWorkshop([without("a"), without("b")]), FakeMachine(cost, 0.005))
    assert found.best == ModelForm(3, disabled=("a",))
    assert reasons(found)["all that seem to help"] == "worse"


def test_of_contradicting_decisions_the_better_one_is_taken() -> None:
    whole, part = without("mixed"), Choice("without mixed at a", disabled=("mixed@'a'",))
    effects = {"mixed": -0.03, "mixed@'a'": -0.09}
    found = searched(FakeWorkshop([whole, part]), FakeMachine(cost_of(effects), 0.005))
    assert found.best.disabled == ("mixed@'a'",)
    said = reasons(found)["without mixed"]
    assert said == "another decision about the same pass gains more"
    other = Choice("with mixed so", edits=("set mixed{x=true}",))
    assert other.passes == whole.passes == part.passes == {"mixed"}
    assert (other.is_scoped, whole.is_scoped, part.is_scoped) == (False, False, True)


def test_a_form_beyond_the_budget_is_rejected_with_the_reason() -> None:
    workshop = FakeWorkshop([GOOD], faults={"good": "output y differs"})
    found = searched(workshop, FakeMachine(cost_of({"good": -0.1}), 0.01))
    assert found.best == O3
    assert [each.reason for each in found.tried if each.stage == "together"] == ["output y differs"]


def test_a_form_that_does_not_run_is_dropped_and_the_others_are_measured() -> None:
    broken = without("broken")
    machine = FakeMachine(cost_of({"good": -0.05}), 0.01, broken=["broken"])
    found = searched(FakeWorkshop([broken, GOOD]), machine)
    assert found.best.disabled == ("good",)
    assert "cannot load" in reasons(found)["without broken"]


def test_decisions_that_do_not_run_together_are_tried_one_by_one() -> None:
    class Refusing(FakeMachine):
        def costs(self, forms: Sequence[Made], number: int, *, apart: bool) -> list[float]:
            if any({"a", "b"} <= {*form.form.disabled} for form in forms):
                raise RuntimeFailure("the compiler gave up")
            return super().costs(forms, number, apart=apart)

    effects = {"a": -0.08, "b": -0.04}
    choices = [without("a"), without("b")]
    found = searched(FakeWorkshop(choices), Refusing(cost_of(effects), 0.005))
    assert found.best == ModelForm(3, disabled=("a",))
    assert reasons(found)["all that seem to help"] == "the compiler gave up"


def test_a_start_that_fails_in_its_proof_leaves_the_next_one() -> None:
    class Failing(FakeMachine):
        def costs(self, forms: Sequence[Made], number: int, *, apart: bool) -> list[float]:
            if len(self.rounds) > 6 and any(form.form.backend == "npu" for form in forms):
                raise RuntimeFailure("the device is lost")
            return super().costs(forms, number, apart=apart)

    starts = (*STARTS, ModelForm(3, "npu"), ModelForm(3, "onnxruntime_cpu"))
    effects = {"npu": -0.2, "onnxruntime_cpu": -0.19}
    found = searched(FakeWorkshop(), Failing(cost_of(effects), 0.002), starts)
    assert found.best == ModelForm(3, "onnxruntime_cpu")
    assert reasons(found)["-O3 --backend npu"] == "the device is lost"


def test_a_reference_that_does_not_run_is_an_error() -> None:
    class Broken(FakeMachine):
        def costs(self, forms: Sequence[Made], number: int, *, apart: bool) -> list[float]:
            raise RuntimeFailure("no such kernel")

    with pytest.raises(RuntimeFailure, match="no such kernel"):
        searched(FakeWorkshop(), Broken(cost_of({})))


def test_decisions_without_a_new_form_are_not_measured() -> None:
    again = Choice("with good too", disabled=("good",), edits=())
    choices = [without("same"), without("unmakeable"), GOOD]
    found = searched(FakeWorkshop([*choices, again], same=["same"]), FakeMachine(cost_of({})))
    said = reasons(found)
    assert said["without same"] == "changes nothing"
    assert said["without unmakeable"] == "it cannot be made"
    assert said["with good too"] == "the same as without good"


def test_without_time_the_result_is_the_reference() -> None:
    machine = FakeMachine(cost_of({"good": -0.05}), 0.01)
    found = searched(FakeWorkshop([GOOD]), machine, elapsed=lambda: 2.0)
    assert (found.best, found.is_confirmed) == (O3, True)
    assert found.notes == ["the time was over before all decisions were looked at"]
    # The confirmation has its first look all the same.
    assert len(machine.rounds) == 10


def test_costs_without_noise_take_one_round() -> None:
    class Exact(FakeMachine):
        is_exact = True

    machine = Exact(cost_of({"good": -0.05}))
    search = Search(FakeWorkshop([GOOD, BAD]), Log(machine, None, {}), STARTS, O3, lambda: 0.0)
    search.run()
    assert search.found.best.disabled == ("good",)
    assert len(machine.rounds) <= 5


# --- interruptions, logs, caches ------------------------------------------------------------------


def interrupted(path: Path, after: int) -> Search:
    machine = FakeMachine(cost_of(EFFECTS), 0.01, interrupt=lambda number: number >= after)
    log = Log(machine, str(path), {"model": "m"})
    search = Search(FakeWorkshop([GOOD, BAD]), log, STARTS, O3, lambda: 0.0)
    with pytest.raises(KeyboardInterrupt):
        search.run()
    search.settle()
    return search


def test_an_interruption_keeps_what_is_proved(tmp_path: Path) -> None:
    whole = FakeMachine(cost_of(EFFECTS), 0.01)
    searched(FakeWorkshop([GOOD, BAD]), whole)
    early = interrupted(tmp_path / "a.json", 8)
    late = interrupted(tmp_path / "b.json", len(whole.rounds) - 3)
    assert early.found.best == O3
    assert late.found.best == ModelForm(3, disabled=("good",))
    assert not late.found.is_confirmed


def test_the_original_is_kept_if_it_seemed_better(tmp_path: Path) -> None:
    cost = cost_of({}, original=-0.2)
    machine = FakeMachine(cost, 0.01, interrupt=lambda number: number >= 8)
    search = Search(FakeWorkshop([GOOD]), Log(machine, None, {}), STARTS, O3, lambda: 0.0)
    with pytest.raises(KeyboardInterrupt):
        search.run()
    search.settle()
    assert search.found.best == ORIGINAL


def test_a_confirmed_result_stays_although_the_original_seemed_better() -> None:
    class Apart(FakeMachine):
        def costs(self, forms: Sequence[Made], number: int, *, apart: bool) -> list[float]:
            costs = super().costs(forms, number, apart=apart)
            worse = [float(apart and made.form == ORIGINAL) for made in forms]
            return [cost + more for cost, more in zip(costs, worse, strict=True)]

    machine = Apart(cost_of({}, original=-0.2), 0.01)
    search = Search(FakeWorkshop([GOOD]), Log(machine, None, {}), STARTS, O3, lambda: 0.0)
    search.run()
    search.settle()
    assert search.found.best == O3


def test_a_resumed_search_measures_only_what_is_new(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    interrupted(path, 12)
    machine = FakeMachine(cost_of(EFFECTS), 0.01, seed=7)
    log = Log(machine, str(path), {"model": "m"}, resume=True)
    search = Search(FakeWorkshop([GOOD, BAD]), log, STARTS, O3, lambda: 0.0)
    search.run()
    assert search.found.best == ModelForm(3, disabled=("good",))
    whole = FakeMachine(cost_of(EFFECTS), 0.01)
    searched(FakeWorkshop([GOOD, BAD]), whole)
    assert len(machine.rounds) <= len(whole.rounds) - 10
    # The same once more takes nothing.
    again = FakeMachine(cost_of({}), interrupt=lambda number: True)
    replayed = Search(
        FakeWorkshop([GOOD, BAD]),
        Log(again, str(path), {"model": "m"}, resume=True), STARTS, O3, lambda: 0.0,
    )  # fmt: skip
    replayed.run()
    assert replayed.found.best == search.found.best
    log.remove()
    assert not path.exists()


def test_a_cache_saves_the_measurement_of_equal_blocks(tmp_path: Path) -> None:
    good, bad = without("good", "h1"), without("bad", "h2")
    effects = {"good": -0.05, "bad": 0.05}

    def run() -> tuple[Search, FakeMachine, GainCache]:
        cache, machine = GainCache(str(tmp_path), "here"), FakeMachine(cost_of(effects), 0.01)
        log = Log(machine, None, {})
        search = Search(FakeWorkshop([good, bad]), log, STARTS, O3, lambda: 0.0, cache)
        search.run()
        cache.save()
        return search, machine, cache

    first, slow, unused = run()
    second, fast, used = run()
    assert first.found.best == second.found.best == ModelForm(3, disabled=("good",))
    assert (unused.hits, used.hits) == (0, 2)
    assert len(fast.rounds) < len(slow.rounds)
    assert reasons(second.found)["without bad"] == "measured before, on equal blocks"


class Shop(FakeWorkshop):
    """A workshop that counts what is forgotten; no form has the backend `unmakeable`."""

    dropped = 0
    is_flat = False
    alike: Mapping[str, str] = {}

    def _alike(self, form: ModelForm) -> str | None:
        return self.alike.get("+".join(sorted(form.disabled)))

    def made(self, form: ModelForm) -> Made | None:
        alike = self._alike(form)
        if form.backend == "unmakeable" or alike == "":
            return None
        if alike is not None:
            form = replace(form, disabled=(alike,))
        made = super().made(form)
        is_plain = self.is_flat and not form.disabled and not form.backend
        return Made(form, "plain", "plain", 1000, 10) if is_plain else made

    def failure(self, form: ModelForm) -> str:
        is_absent = form.backend == "unmakeable" or self._alike(form) == ""
        return "it cannot be made" if is_absent else super().failure(form)

    def forget(self, made: Made) -> None:
        super().forget(made)
        self.dropped += 1


def scenario(
    choices: str = "",
    effects: dict[str, float] | None = None,
    more: dict[str, float] | None = None,
    *,
    original: float = 0.2,
    noise: float = 0.0,
    seed: int = 0,
    broken: str = "",
    same: str = "",
    faults: str = "",
    starts: str = "",
    rounds: int = 0,
    exact: bool = False,
    flat: bool = False,
    alike: Mapping[str, str] | None = None,
) -> str:
    """Return what a search says.

    Args:
        choices: decisions, by the passes that they leave out.
        effects: on the logarithm of the cost.
        more: the effects of two decisions together, "a+b".
        original, noise, seed, broken: of the machine.
        same: a decision that changes nothing.
        faults: decisions and starts beyond the budget.
        starts: backends and files.
        rounds: after these the time is over; 0 for never.
        exact: the machine has no noise, and says so.
        flat: no level changes anything.
        alike: decisions that are one of them together, or cannot be made.
    """
    plain = cost_of(effects or {}, original)

    def cost(form: ModelForm) -> float:
        pairs = (more or {}).items()
        return plain(form) + sum(v for k, v in pairs if {*k.split("+")} <= {*form.disabled})

    machine = FakeMachine(cost, noise, seed, [broken])
    machine.is_exact = exact
    shop = Shop([without(n) for n in choices.split()], [same], dict.fromkeys(faults.split(), "far"))
    shop.is_flat, shop.alike = flat, alike or {}
    forms = [
        ModelForm(None, file=name) if name.endswith(".onnx") else ModelForm(3, name)
        for name in starts.split()
    ]
    search = Search(
        shop, Log(machine, None, {}), [*STARTS, *forms], O3,
        lambda: len(machine.rounds) / rounds if rounds else 0.0,
    )  # fmt: skip
    search.run()
    found = search.found
    proved = "proved" if found.is_proved else "open"
    return "\n".join([
        *(f"{each.stage} {each.text}: {each.reason}{' +' if each.is_taken else ''}"
          for each in found.tried),
        *found.notes,
        f"{found.best}, {proved}, {len(machine.rounds)} rounds, {shop.dropped} dropped",
    ]).replace("--disable", "no")  # fmt: skip


@pytest.mark.parametrize("seed", [50, 96, 159, *range(20)])
def test_a_search_gains_as_much_as_one_decision_or_all_that_help(seed: int) -> None:
    draw = random.Random(seed)
    names = "abcdef"[: draw.randint(2, 5)]
    effects = {name: draw.choice([-0.08, -0.05, -0.03, -0.02, 0.02, 0.05]) for name in names}
    pairs = {
        pair: draw.choice([0.05, 0.03, 0.08, 0.1, -0.02])
        for pair in combinations(names, 2) if draw.random() < 0.3
    }  # fmt: skip
    plain = cost_of(effects)

    def cost(form: ModelForm) -> float:
        return plain(form) + sum(v for pair, v in pairs.items() if {*pair} <= {*form.disabled})

    found = searched(FakeWorkshop([*map(without, names)]), FakeMachine(cost))
    helpful = tuple(name for name in names if effects[name] < 0)
    rivals = [(), helpful, *((name,) for name in helpful)]
    limit = min(cost(ModelForm(3, disabled=rival)) for rival in rivals)
    assert cost(found.best) < limit + 0.005, (effects, pairs)


def test_all_that_a_search_says() -> None:
    for options, expected in (
        ({'choices': 'unmakeable a mixed', 'effects': {'mixed': -0.05},
          'more': {'a+unmakeable': 0.02}, 'broken': 'unmakeable', 'starts': 'npu'},
         """\
start as it is: worse
start -O2: worse
start -O3 --backend npu: no difference
decision without unmakeable: it cannot be made
decision without a: no difference
together without mixed: better +
decision without mixed: better, alone or together +
confirmation -O3 no mixed, beside -O3: better +
confirmation -O3 no mixed, beside as it is: better +
-O3 no mixed, proved, 30 rounds, 4 dropped"""),
        ({'original': -0.2, 'starts': 'npu'},
         """\
start as it is: better
start -O2: worse
start -O3 --backend npu: no difference
confirmation -O3, beside as it is: worse
as it is is better than every form that was found
as it is, proved, 16 rounds, 2 dropped"""),
        ({'choices': 'c d', 'effects': {'d': -0.003, 'p.onnx': -0.05}, 'more': {'c+d': 0.3},
          'original': -0.1, 'same': 'd', 'starts': 'p.onnx', 'rounds': 12},
         """\
start as it is: better
start -O2: worse
start p.onnx: better
decision without d: changes nothing
decision without c: no difference
confirmation -O3, beside as it is: worse
confirmation -O3, beside p.onnx: worse
as it is is better than every form that was found
as it is, proved, 17 rounds, 2 dropped"""),
        ({'choices': 'mixed a same',
          'effects': {'mixed': 0.05, 'p.onnx': 0.05, 'q.onnx': -0.02},
          'more': {'same+mixed': 0.1}, 'original': -0.2, 'same': 'same',
          'starts': 'p.onnx q.onnx', 'faults': 'q.onnx', 'exact': True},
         """\
start as it is: better
start -O2: worse
start p.onnx: worse
start q.onnx: far
decision without same: changes nothing
decision without mixed: worse
decision without a: no difference
confirmation -O3, beside as it is: worse
as it is is better than every form that was found
as it is, proved, 3 rounds, 5 dropped"""),
        ({'choices': 'unmakeable c a d', 'effects': {'c': 0.05, 'p.onnx': -0.02},
          'more': {'d+a': 0.05}, 'noise': 0.05, 'seed': 2, 'broken': 'c',
          'starts': 'npu p.onnx'},
         """\
start as it is: worse
start -O2: worse
start -O3 --backend npu: no difference
start p.onnx: better
decision without unmakeable: it cannot be made
decision without c: onnxruntime cannot load -O3 no c
together all that seem to help: no difference
together without a: no difference
together without d: no difference
decision without a: no gain was proved
decision without d: no gain was proved
confirmation -O3, beside as it is: better +
confirmation -O3, beside p.onnx: no difference +
-O3, proved, 255 rounds, 5 dropped"""),
        ({'choices': 'unmakeable c mixed e', 'effects': {'c': -0.003, 'mixed': 0.02},
          'more': {'mixed+c': 0.05}, 'starts': 'unmakeable', 'rounds': 60},
         """\
start -O3 --backend unmakeable: it cannot be made
start as it is: worse
start -O2: worse
decision without unmakeable: it cannot be made
decision without mixed: worse
decision without e: no difference
together without c: better +
decision without c: better, alone or together +
confirmation -O3 no c, beside -O3: better +
confirmation -O3 no c, beside as it is: better +
-O3 no c, proved, 28 rounds, 4 dropped"""),
        ({'choices': "mixed@'x' c a unmakeable e",
          'effects': {"mixed@'x'": -0.05, 'c': -0.2, 'a': -0.08, 'e': -0.003, 'cpu': -0.02},
          'original': 0.0, 'noise': 0.05, 'seed': 2, 'starts': 'npu cpu', 'faults': 'cpu'},
         """\
start as it is: undecided
start -O2: worse
start -O3 --backend npu: undecided
start -O3 --backend cpu: undecided
decision without unmakeable: it cannot be made
decision without e: undecided
together all that seem to help: better +
decision without c: better, alone or together +
decision without a: better, alone or together +
decision without mixed@'x': better, alone or together +
confirmation -O3 no c no a no 'mixed@'"'"'x'"'"'', beside -O3: better +
confirmation -O3 no c no a no 'mixed@'"'"'x'"'"'', beside as it is: better +
-O3 no c no a no 'mixed@'"'"'x'"'"'', proved, 94 rounds, 7 dropped"""),
        ({'effects': {'npu': -0.05}, 'noise': 0.05, 'seed': 8, 'starts': 'npu',
          'rounds': 100},
         """\
start as it is: worse
start -O2: worse
start -O3 --backend npu: better, to be confirmed +
confirmation -O3 --backend npu, beside -O3: better +
confirmation -O3 --backend npu, beside as it is: better +
-O3 --backend npu, proved, 72 rounds, 1 dropped"""),
        ({'choices': 'g0 g1 g2 g3 g4 g5',
          'effects': {'g1': -0.2, 'g2': -0.02, 'g3': 0.02, 'g4': -0.02, 'g5': -0.2, 'npu': -0.3},
          'original': -0.02, 'starts': 'npu p.onnx', 'exact': True},
         """\
start as it is: better
start -O2: worse
start -O3 --backend npu: better +
start p.onnx: better
decision without g0: no difference
decision without g3: worse
together all that seem to help: better +
decision without g1: better, alone or together +
decision without g5: better, alone or together +
decision without g2: better, alone or together +
decision without g4: better, alone or together +
confirmation -O3 --backend npu no g1 no g5 no g2 no g4, beside -O3: better +
confirmation -O3 --backend npu no g1 no g5 no g2 no g4, beside as it is: better +
-O3 --backend npu no g1 no g5 no g2 no g4, proved, 6 rounds, 8 dropped"""),
        ({'choices': 'b c e', 'effects': {'b': -0.2, 'e': -0.08, 'npu': -0.05, 'cpu': -0.1},
          'noise': 0.05, 'seed': 7, 'broken': 'b', 'starts': 'npu cpu'},
         """\
start as it is: worse
start -O2: worse
start -O3 --backend npu: better
start -O3 --backend cpu: better +
decision without b: onnxruntime cannot load -O3 --backend cpu no b
together all that seem to help: better +
together those that it needs: better +
decision without e: better, alone or together +
decision without c: no gain was proved
confirmation -O3 --backend cpu no e, beside -O3: better +
confirmation -O3 --backend cpu no e, beside as it is: better +
-O3 --backend cpu no e, proved, 103 rounds, 5 dropped"""),
        ({'choices': 'mixed b', 'effects': {'mixed': 0.05, 'npu': -0.3, 'p.onnx': -0.3},
          'starts': 'npu p.onnx'},
         """\
start as it is: worse
start -O2: worse
start -O3 --backend npu: better +
start p.onnx: better
decision without mixed: worse
decision without b: no difference
confirmation -O3 --backend npu, beside -O3: better +
confirmation -O3 --backend npu, beside as it is: better +
-O3 --backend npu, proved, 30 rounds, 4 dropped"""),
        ({'choices': 'g0 g1 g2 g3 g4 g5 g6',
          'effects': {'g1': -0.004, 'g2': -0.003, 'g3': -0.2, 'g5': -0.08}, 'same': 'g6',
          'rounds': 40},
         """\
start as it is: worse
start -O2: worse
decision without g0: no difference
decision without g4: no difference
decision without g6: changes nothing
together all that seem to help: better +
together those that it needs: better +
decision without g3: better, alone or together +
decision without g5: better, alone or together +
decision without g1: better, alone or together +
decision without g2: no gain was proved
confirmation -O3 no g3 no g5 no g1, beside -O3: better +
confirmation -O3 no g3 no g5 no g1, beside as it is: better +
-O3 no g3 no g5 no g1, proved, 44 rounds, 7 dropped"""),
        ({'choices': 'd e', 'effects': {'d': -0.02, 'e': -0.02}, 'more': {'e+d': 0.02},
          'noise': 0.003, 'seed': 2, 'starts': 'unmakeable'},
         """\
start -O3 --backend unmakeable: it cannot be made
start as it is: worse
start -O2: worse
together all that seem to help: better +
together those that it needs: better +
decision without d: better, alone or together +
decision without e: no gain was proved
confirmation -O3 no d, beside -O3: better +
confirmation -O3 no d, beside as it is: better +
-O3 no d, proved, 48 rounds, 3 dropped"""),
        ({'choices': "same e mixed@'x' c", 'effects': {'e': -0.02, "mixed@'x'": -0.004},
          'original': -0.1, 'noise': 0.05, 'seed': 5, 'same': 'same', 'starts': 'unmakeable',
          'rounds': 100},
         """\
start -O3 --backend unmakeable: it cannot be made
start as it is: better
start -O2: worse
decision without same: changes nothing
decision without mixed@'x': undecided
together all that seem to help: better +
together those that it needs: no difference
decision without e: better, alone or together +
decision without c: better, alone or together +
confirmation -O3 no e no c, beside -O3: proved before; the time was over +
confirmation -O3 no e no c, beside as it is: no difference +
-O3 no e no c, proved, 100 rounds, 4 dropped"""),
        ({'choices': 'e', 'effects': {'npu': -0.05, 'cpu': -0.1}, 'original': -0.2,
          'noise': 0.05, 'seed': 5, 'starts': 'npu cpu', 'rounds': 40},
         """\
start as it is: better
start -O2: worse
start -O3 --backend npu: better
start -O3 --backend cpu: better, to be confirmed +
together without e: no difference
decision without e: no gain was proved
confirmation -O3 --backend cpu, beside -O3: no difference
confirmation -O3, beside as it is: worse
no form is proved to be better than -O3
as it is is better than every form that was found
as it is, open, 46 rounds, 3 dropped"""),
        ({'choices': 'e unmakeable', 'effects': {'e': -0.003, 'p.onnx': -0.1},
          'more': {'e+unmakeable': 0.1}, 'noise': 0.003, 'seed': 7, 'starts': 'npu p.onnx',
          'rounds': 30},
         """\
start as it is: worse
start -O2: worse
start -O3 --backend npu: no time was left to prove it
start p.onnx: better
decision without unmakeable: it cannot be made
together without e: no time was left to prove it
decision without e: no gain was proved
confirmation -O3, beside as it is: better +
confirmation -O3, beside p.onnx: worse
p.onnx is better than every form that was found
p.onnx, proved, 37 rounds, 3 dropped"""),
        ({'effects': {'npu': -0.3}, 'starts': 'npu', 'faults': 'npu'},
         """\
start as it is: worse
start -O2: worse
start -O3 --backend npu: far
confirmation -O3, beside as it is: better +
-O3, proved, 16 rounds, 2 dropped"""),
        ({'choices': 'a', 'effects': {'a': -0.05}, 'original': 0.0, 'flat': True},
         """\
together without a: better +
decision without a: better, alone or together +
confirmation -O3 no a, beside -O3: better +
confirmation -O3 no a, beside as it is: better +
-O3 no a, proved, 26 rounds, 1 dropped"""),
        ({'choices': 'a b c', 'effects': {'a': -0.05, 'b': -0.04, 'c': -0.03},
          'alike': {'a+b+c': ''}, 'faults': 'a'},
         """\
start as it is: worse
start -O2: worse
together all that seem to help: it cannot be made
together without a: far
together without b: better +
together without c: better +
decision without a: no gain was proved
decision without b: better, alone or together +
decision without c: better, alone or together +
confirmation -O3 no b no c, beside -O3: better +
confirmation -O3 no b no c, beside as it is: better +
-O3 no b no c, proved, 40 rounds, 4 dropped"""),
        ({'choices': 'a b c', 'effects': {'a': -0.05, 'b': -0.04, 'c': -0.03},
          'alike': {'b+c': ''}},
         """\
start as it is: worse
start -O2: worse
together all that seem to help: better +
decision without a: better, alone or together +
decision without b: better, alone or together +
decision without c: better, alone or together +
confirmation -O3 no a no b no c, beside -O3: better +
confirmation -O3 no a no b no c, beside as it is: better +
-O3 no a no b no c, proved, 34 rounds, 4 dropped"""),
        ({'choices': 'a b', 'effects': {'a': -0.05, 'b': -0.04}, 'alike': {'a+b': 'a'}},
         """\
start as it is: worse
start -O2: worse
together all that seem to help: better +
together those that it needs: better +
decision without a: better, alone or together +
decision without b: no gain was proved
confirmation -O3 no a, beside -O3: better +
confirmation -O3 no a, beside as it is: better +
-O3 no a, proved, 34 rounds, 3 dropped"""),
        ({'choices': 'a b c', 'effects': {'a': -0.05, 'b': -0.05, 'c': -0.03},
          'more': {'a+b': 0.05}},
         """\
start as it is: worse
start -O2: worse
together all that seem to help: better +
together those that it needs: better +
decision without a: no gain was proved
decision without b: better, alone or together +
decision without c: better, alone or together +
confirmation -O3 no b no c, beside -O3: better +
confirmation -O3 no b no c, beside as it is: better +
-O3 no b no c, proved, 60 rounds, 4 dropped"""),
        ({'choices': 'a b c d', 'effects': {'a': -0.05, 'b': -0.05, 'c': -0.03, 'd': -0.01},
          'more': {'a+b': 0.05, 'c+d': 0.01}},
         """\
start as it is: worse
start -O2: worse
together all that seem to help: better +
together those that it needs: better +
together those that it needs: better +
decision without a: no gain was proved
decision without b: better, alone or together +
decision without c: better, alone or together +
decision without d: no gain was proved
confirmation -O3 no b no c, beside -O3: better +
confirmation -O3 no b no c, beside as it is: better +
-O3 no b no c, proved, 78 rounds, 5 dropped"""),
        ({'choices': 'a b c', 'effects': {'a': -0.05, 'b': -0.048, 'c': -0.03},
          'more': {'a+b': 0.049}},
         """\
start as it is: worse
start -O2: worse
together all that seem to help: better +
together those that it needs: better +
decision without a: better, alone or together +
decision without b: no gain was proved
decision without c: better, alone or together +
confirmation -O3 no a no c, beside -O3: better +
confirmation -O3 no a no c, beside as it is: better +
-O3 no a no c, proved, 52 rounds, 4 dropped"""),
        ({'choices': 'a b c d', 'effects': {'a': -0.05, 'b': -0.05, 'c': -0.03, 'd': -0.03},
          'more': {'a+b': 0.05}, 'alike': {'c+d': ''}},
         """\
start as it is: worse
start -O2: worse
together all that seem to help: better +
together those that it needs: better +
decision without a: no gain was proved
decision without b: better, alone or together +
decision without c: better, alone or together +
decision without d: better, alone or together +
confirmation -O3 no b no c no d, beside -O3: better +
confirmation -O3 no b no c no d, beside as it is: better +
-O3 no b no c no d, proved, 56 rounds, 5 dropped"""),
        ({'choices': 'a b c d', 'effects': {'a': -0.05, 'b': -0.05, 'c': -0.04, 'd': -0.04},
          'more': {'a+b': 0.05, 'c+d': 0.04}, 'rounds': 52},
         """\
start as it is: worse
start -O2: worse
together all that seem to help: better +
together those that it needs: better +
together those that it needs: no time was left to prove it
decision without a: no gain was proved
decision without b: better, alone or together +
decision without c: better, alone or together +
decision without d: better, alone or together +
confirmation -O3 no b no c no d, beside -O3: better +
confirmation -O3 no b no c no d, beside as it is: better +
-O3 no b no c no d, proved, 57 rounds, 5 dropped"""),
        ({'original': 0.0, 'flat': True},
         """\
-O3, proved, 0 rounds, 0 dropped"""),
    ):  # fmt: skip
        assert scenario(**options) == expected, options


def test_an_original_that_cannot_be_made_is_an_error() -> None:
    class Broken(FakeWorkshop):
        def made(self, form: ModelForm) -> Made | None:
            return None

        def failure(self, form: ModelForm) -> str:
            return "no such operator"

    with pytest.raises(RuntimeFailure, match="as it is: no such operator"):
        searched(Broken(), FakeMachine(cost_of({})))
