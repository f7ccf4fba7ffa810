"""The log of a search: rounds that are known are not measured again."""

import json
import math
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.extensions.tuning.fakes import (
    O2,
    O3,
    ORIGINAL,
    STARTS,
    FakeMachine,
    FakeWorkshop,
    cost_of,
    without,
)
from tiered.extensions.tuning.log import Log
from tiered.extensions.tuning.model_forms import Made, ModelForm
from tiered.extensions.tuning.search import Search
from tiered.support.errors import ModelError, RuntimeFailure, UsageError

EFFECTS = {"good": -0.05, "bad": 0.05}
GOOD, BAD = without("good"), without("bad")


def made(form: ModelForm = O3, digest: str = "") -> Made:
    return Made(form, "p", digest or str(form), 10, 1)


FORMS = [made(O3), made(O2)]


def test_a_drift_of_the_machine_is_known() -> None:
    class Slowing(FakeMachine):
        def costs(self, forms: Sequence[Made], number: int, *, apart: bool) -> list[float]:
            drifted = 0.02 * len(self.rounds)
            costs = super().costs(forms, number, apart=apart)
            return [cost + drifted for cost in costs]

    for kind, drifts in ((Slowing, True), (FakeMachine, False)):
        log = Log(kind(cost_of(EFFECTS), 0.001), None, {})
        Search(FakeWorkshop([GOOD, BAD]), log, STARTS, O3, lambda: 0.0).run()
        found = log.drift()
        assert (found is not None and found > 1.1) == drifts


def test_a_round_that_is_known_is_not_measured_again() -> None:
    machine = FakeMachine(cost_of({}))
    log = Log(machine, None, {}, resume=True)
    first = log.costs("screen", FORMS, 0, apart=False)
    assert log.has("screen", FORMS, 0)
    assert log.costs("screen", FORMS, 0, apart=True) == first
    assert (log.measured, len(machine.rounds)) == (1, 1)


@pytest.mark.parametrize(
    ("stage", "forms", "number"),
    [("prove", FORMS, 0), ("screen", FORMS[::-1], 0), ("screen", FORMS[:1], 0),
     ("screen", FORMS, 1), ("screen", [made(O3, "other"), made(O2)], 0)],
)  # fmt: skip
def test_a_round_is_known_by_stage_forms_and_number(
    stage: str, forms: Sequence[Made], number: int
) -> None:
    log = Log(FakeMachine(cost_of({})), None, {})
    log.costs("screen", FORMS, 0, apart=False)
    assert not log.has(stage, forms, number)
    log.costs(stage, forms, number, apart=False)
    assert log.measured == 2


def test_forms_are_known_by_their_digests_alone() -> None:
    log = Log(FakeMachine(cost_of({})), None, {})
    log.costs("screen", [made(O3, "d")], 0, apart=False)
    assert log.has("screen", [Made(O2, "elsewhere", "d", 99, 99)], 0)


def test_rounds_are_written_after_each_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    log = Log(FakeMachine(cost_of({})), str(path), {"model": "m"})
    assert not path.exists()
    first = log.costs("screen", FORMS, 0, apart=False)
    written = json.loads(path.read_text())
    assert (written["format"], written["key"]) == (1, {"model": "m"})
    assert list(written["rounds"].values()) == [first]
    machine = FakeMachine(cost_of({}))
    again = Log(machine, str(path), {"model": "m"}, resume=True)
    assert again.costs("screen", FORMS, 0, apart=False) == first
    assert (again.measured, machine.rounds) == (0, [])


def test_without_resume_a_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text("no log")
    log = Log(FakeMachine(cost_of({})), str(path), {})
    assert not log.has("screen", FORMS, 0)
    log.remove()
    assert not path.exists()
    log.remove()
    Log(FakeMachine(cost_of({})), None, {}).remove()


def test_a_measurement_may_be_forgotten_and_fail() -> None:
    machine = FakeMachine(cost_of({}), broken=["broken"])
    log = Log(machine, None, {})
    log.measure(FORMS)
    assert (log.measured, len(machine.rounds)) == (0, 1)
    with pytest.raises(RuntimeFailure):
        log.measure([made(ModelForm(3, disabled=("broken",)))])
    with pytest.raises(RuntimeFailure):
        log.costs("a", [made(ModelForm(3, disabled=("broken",)))], 0, apart=False)
    assert not log.has("a", [made(ModelForm(3, disabled=("broken",)))], 0)


def test_the_drift_is_of_what_was_measured_most() -> None:
    class Growing(FakeMachine):
        """Costs of the first form grow by a tenth of the logarithm each round."""

        def costs(self, forms: Sequence[Made], number: int, *, apart: bool) -> list[float]:
            self.rounds.append(())
            return [0.1 * number if forms[0].form == O3 else 0.0 for _ in forms]

    log = Log(Growing(cost_of({})), None, {})
    assert log.drift() is None
    for number in range(12):
        log.costs("a", FORMS, number, apart=False)
    log.costs("a", [made(ORIGINAL)], 0, apart=False)
    found = log.drift()
    assert found is not None
    assert found > math.exp(0.5)


def test_costs_without_noise_have_no_drift() -> None:
    class Exact(FakeMachine):
        is_exact = True

    log = Log(Exact(cost_of({})), None, {})
    for number in range(12):
        log.costs("a", FORMS, number, apart=False)
    assert log.is_exact
    assert log.drift() is None


def resumed(path: Path, **key: str) -> Log:
    return Log(FakeMachine(cost_of({})), str(path), key, resume=True)


def test_a_log_of_another_search_is_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    Log(FakeMachine(cost_of({})), str(path), {"model": "m", "level": "3"}).save()
    resumed(path, model="m", level="3")
    resumed(path, model="m")
    with pytest.raises(UsageError, match=r"another search: model was 'm', not 'other'$"):
        resumed(path, model="other", level="3")
    with pytest.raises(UsageError, match="model was 'm', not 'x'; level was '3', not '2'"):
        resumed(path, model="x", level="2")
    with pytest.raises(UsageError, match="more was None, not 'x'"):
        resumed(path, more="x")


@pytest.mark.parametrize(
    "text",
    ["[]", "{}", '{"format": 2, "key": {}, "rounds": {}}', '{"format": 1}',
     '{"format": 1, "key": [], "rounds": {}}', '{"format": 1, "key": {}, "rounds": []}',
     '{"format": 1, "key": {}, "rounds": {"a": 1.0}}',
     '{"format": 1, "key": {}, "rounds": {"a": [null]}}'],
)  # fmt: skip
def test_a_file_that_is_no_log_is_an_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "log.json"
    path.write_text(text)
    with pytest.raises(ModelError, match="is no log of a search of this version"):
        resumed(path)


def test_a_file_that_is_not_there_or_not_readable_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no file '.*'; a search that is ended leaves one"):
        resumed(tmp_path / "none.json")
    (tmp_path / "log.json").write_text("{")
    with pytest.raises(ModelError, match="--resume: cannot read"):
        resumed(tmp_path / "log.json")
