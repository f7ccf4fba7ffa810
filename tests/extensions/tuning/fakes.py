"""Forms and a machine that exist in numbers alone: nothing here takes time."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from tiered.extensions.tuning.found import Found
from tiered.extensions.tuning.log import Log
from tiered.extensions.tuning.model_forms import Choice, Made, ModelForm
from tiered.extensions.tuning.search import Search
from tiered.support.errors import RuntimeFailure

ORIGINAL, O2, O3 = ModelForm(None), ModelForm(2), ModelForm(3)
STARTS = (ORIGINAL, O3, O2)


class FakeWorkshop:
    """Makes forms by name.

    Args:
        choices: what each form may decide otherwise.
        same: decisions that change nothing.
        faults: by decision, how it exceeds the budget.
    """

    def __init__(
        self,
        choices: Sequence[Choice] = (),
        same: Sequence[str] = (),
        faults: Mapping[str, str] | None = None,
    ) -> None:
        self._choices, self._same = choices, {*same}
        self._faults = faults or {}
        self.asked: list[ModelForm] = []

    def made(self, form: ModelForm) -> Made | None:
        if "unmakeable" in form.disabled:
            return None
        self.asked.append(form)
        kept = tuple(name for name in form.disabled if name not in self._same)
        digest = str(
            ModelForm(form.level, form.backend, form.required, kept, form.edits, form.file)
        )
        return Made(form, digest, digest, 1000, 10)

    def failure(self, form: ModelForm) -> str:
        return "it cannot be made" if "unmakeable" in form.disabled else ""

    def choices(self, form: ModelForm) -> Sequence[Choice]:
        return self._choices

    def fault(self, made: Made) -> str:
        names = (*made.form.disabled, made.form.file, made.form.backend)
        return next((self._faults[name] for name in names if name in self._faults), "")

    def forget(self, made: Made) -> None:
        assert made.form not in STARTS[:2]


class FakeMachine:
    """A machine on which processes differ, runs vary, and the speed drifts.

    Args:
        cost: the logarithm of the true cost of a form.
        noise: the standard deviation of a round of one form, as a logarithm.
        seed: of the noise.
        broken: names of decisions whose forms do not run.
        interrupt: returns whether Ctrl-C is pressed.
        bursts: the share of rounds of a form in which other work takes 5 to 100 % more.
    """

    is_exact = False

    def __init__(
        self,
        cost: Callable[[ModelForm], float],
        noise: float = 0.0,
        seed: int = 0,
        broken: Sequence[str] = (),
        interrupt: Callable[[int], bool] = lambda round_: False,
        bursts: float = 0.0,
    ) -> None:
        self._cost, self._noise, self._random = cost, noise, random.Random(seed)
        self._bursts = bursts
        self._broken, self._interrupt = {*broken}, interrupt
        self.rounds: list[tuple[str, ...]] = []

    def costs(self, forms: Sequence[Made], number: int, *, apart: bool) -> list[float]:
        if self._interrupt(len(self.rounds)):
            raise KeyboardInterrupt
        for form in forms:
            if self._broken & {*form.form.disabled}:
                raise RuntimeFailure(f"onnxruntime cannot load {form.form}")
        self.rounds.append(tuple(form.digest for form in forms))
        drift = 0.0005 * len(self.rounds)
        return [self._cost(form.form) + drift + self._more() for form in forms]

    def _more(self) -> float:
        """Return what chance adds to a cost."""
        burst = self._random.uniform(0.05, 0.7) if self._random.random() < self._bursts else 0.0
        return self._random.gauss(0, self._noise) + burst


def without(name: str, *blocks: str) -> Choice:
    return Choice(f"without {name}", disabled=(name,), blocks=blocks)


def cost_of(effects: Mapping[str, float], original: float = 0.2) -> Callable[[ModelForm], float]:
    """Return the cost of forms: that of the level, and the effect of each decision."""

    def cost(form: ModelForm) -> float:
        if form.level is None:
            return effects.get(form.file, original)
        parts = (*form.disabled, *form.required, *form.edits, form.backend)
        return {3: 0.0, 2: 0.1}.get(form.level, 0.15) + sum(
            effects.get(name, 0.0) for name in parts
        )

    return cost


def searched(
    workshop: FakeWorkshop,
    machine: FakeMachine,
    starts: Sequence[ModelForm] = STARTS,
    elapsed: Callable[[], float] = lambda: 0.0,
) -> Found:
    """Run a search, and return what it found."""
    search = Search(workshop, Log(machine, None, {}), starts, O3, elapsed)
    search.run()
    return search.found
