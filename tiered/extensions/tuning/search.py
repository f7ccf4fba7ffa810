"""The search: which starts are good, which decisions matter, what they come to together.

1. Starts: the original, levels, backends and candidates race beside the reference, which is -O3
   (-O2 where outputs must be exact). The best one that decisions can be added to becomes the base,
   if a test proves it; files that seem better as they are remain rivals.
2. Decisions: each one is added to the base and raced beside it.
3. Together: what seems to help is added at once; if a test proves that, it is the new base, else
   one by one, the largest gain first.
4. Confirmation: the result beside the reference, the original and rivals on fresh rounds, each form
   in a process of its own. Without a proof the result is the reference; where that is proved to be
   worse than the original or a rival, it is that one.

Nothing but the answers of the judge and the clock decides: with the same answers, and time enough,
the result is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from tiered.extensions.tuning.cache import GainCache
from tiered.extensions.tuning.found import Found
from tiered.extensions.tuning.log import Log
from tiered.extensions.tuning.model_forms import Choice, Made, ModelForm, compatible, with_choices
from tiered.extensions.tuning.race import (
    SLOWER,
    USEFUL,
    Gain,
    Pair,
    Race,
    is_undecided,
    reason_of,
    width_for,
)
from tiered.support.errors import RuntimeFailure

_SHARES: Final = {"start": 0.2, "proof": 0.4, "decision": 0.7, "together": 0.9}
"""The share of the time that is over at the end of a stage; the rest confirms."""
_MOST_SINGLE: Final = 4
"""Decisions that are tried one by one where all together are no gain."""


class Workshop(Protocol):
    """Makes forms, and knows what each may decide otherwise."""

    def made(self, form: ModelForm) -> Made | None: ...
    def failure(self, form: ModelForm) -> str: ...
    def choices(self, form: ModelForm) -> Iterable[Choice]: ...
    def fault(self, made: Made) -> str:
        """Return how a form exceeds the budget or fails; an empty string if it does neither."""
        ...

    def forget(self, made: Made) -> None: ...


class Search:
    """One search.

    Args:
        workshop: makes forms.
        log: measures them.
        starts: the forms to begin with; the original is the first.
        reference: the form that a result must beat.
        elapsed: the share of the time that is over.
        cache: what earlier searches measured.
        say: called with the progress.
    """

    def __init__(
        self,
        workshop: Workshop,
        log: Log,
        starts: Sequence[ModelForm],
        reference: ModelForm,
        elapsed: Callable[[], float],
        cache: GainCache | None = None,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._workshop, self._log, self._elapsed, self._say = workshop, log, elapsed, say
        self._starts, self._reference = starts, reference
        self._cache = cache or GainCache(None, "")
        self.found = Found(reference)
        self._faults: dict[Made, str] = {}
        self._rivals: list[Made] = []
        self._kept: tuple[Made, ...] = ()
        self._heats = 0

    def run(self) -> None:
        """Search; what is found so far is in `found` at any time.

        Raises:
            RuntimeFailure: the original or the reference fails.
        """
        original, reference = self._needed(self._starts[0]), self._needed(self._reference)
        self._kept = (original, reference)
        base = self._decide(self._start(reference))
        self._confirm(base, reference, original)

    def settle(self) -> None:
        """End a search that is interrupted: the original, if it seemed better than the best."""
        first = self._starts[0]
        if not self.found.is_confirmed and any(made.form == first for made in self._rivals):
            self.found.fall_back(first)

    def _needed(self, form: ModelForm) -> Made:
        made = self._workshop.made(form)
        if made is None:
            raise RuntimeFailure(f"{form}: {self._workshop.failure(form)}")
        return made

    def _race(self, stage: str) -> Race:
        limit = _SHARES.get(stage, 1.0)
        return Race(self._log, lambda: self._elapsed() >= limit)

    # --- starts -----------------------------------------------------------------------------------

    def _start(self, reference: Made) -> Made:
        """Return the best of the starts that decisions can be added to."""
        self._say("starts")
        race, forms = self._race("start"), [*self._starting_forms()]
        gains = race.screen("start", reference, forms, only_best=True)
        base, why = self._best_start(reference, gains)
        bar = gains[base].ratio.median if base in gains else 1.0
        for made, gain in gains.items():
            reason = why.get(made, gain.verdict)
            if made.form.level is None and gain.ratio.median < bar:
                fault = self._fault(made)
                reason = fault or reason
                self._rivals += [] if fault else [made]
            self.found.note("start", str(made.form), gain, made == base, reason)
        for made, failure in race.failures.items():
            self.found.note("start", str(made.form), None, False, failure)
        self.found.accept(base.form)
        self._forget(gains, base)
        return base

    def _starting_forms(self) -> Iterator[Made]:
        """Yield the forms that can be made, the original first."""
        for form in self._starts:
            made = self._workshop.made(form)
            if made is None:
                self.found.note("start", str(form), None, False, self._workshop.failure(form))
            else:
                yield made

    def _best_start(
        self, reference: Made, gains: Mapping[Made, Gain]
    ) -> tuple[Made, dict[Made, str]]:
        """Return the start that is better than the reference, or the reference.

        Without time for a proof, the confirmation is the proof.
        """
        why: dict[Made, str] = {}
        able = [made for made, gain in gains.items() if made.form.level is not None]
        for made in sorted(able, key=lambda made: gains[made].ratio.median):
            if gains[made].ratio.median >= 1:
                break
            why[made] = self._fault(made)
            if why[made]:
                continue
            race = self._race("proof")
            proof = race.prove("start proof", made, reference)
            why[made] = race.failures.get(made, reason_of(proof))
            if made in race.failures:
                continue
            if proof is not None and proof.is_better:
                return made, why
            if is_undecided(proof) and gains[made].is_better:
                why[made] = "better, to be confirmed"
                self.found.is_proved = False
                return made, why
            break  # those that seem less good are not better
        return reference, why

    # --- decisions --------------------------------------------------------------------------------

    def _decide(self, base: Made) -> Made:
        """Return the base with the decisions that pay."""
        self._say("decisions")
        helpful = self._screened(base, self._workshop.choices(base.form))
        helpful.sort(key=lambda pair: pair[1].ratio.median)
        able = compatible([choice for choice, _ in helpful])
        taken = self._together(base, able)
        for choice, gain in helpful:
            is_taken = choice in self.found.taken
            reason = "better, alone or together" if is_taken else "no gain was proved"
            if choice not in able:
                reason = "another decision about the same pass gains more"
            self.found.note("decision", choice.text, gain, is_taken, reason)
        return taken

    def _screened(self, base: Made, choices: Iterable[Choice]) -> list[tuple[Choice, Gain]]:
        """Return the decisions that seem to help."""
        helpful: list[tuple[Choice, Gain]] = []
        seen: dict[Made, Choice] = {}
        heat: dict[Made, Choice] = {}
        for choice in choices:  # looking for them takes time, too
            if self._elapsed() >= _SHARES["decision"]:
                self.found.notes.append("the time was over before all decisions were looked at")
                break
            known = self._cache.gain(base.form, choice)
            if known is not None and known.is_better:
                helpful.append((choice, known))
            elif known is not None:
                self.found.note(
                    "decision", choice.text, known, False, "measured before, on equal blocks"
                )
            else:
                made = self._candidate(base, choice, seen)
                heat.update({} if made is None else {made: choice})
            if len(heat) == width_for(base):
                helpful += self._heat(base, heat)
                heat = {}
        return helpful + self._heat(base, heat)

    def _candidate(self, base: Made, choice: Choice, seen: dict[Made, Choice]) -> Made | None:
        """Return the base with a decision, None if that is no new form."""
        form = choice.added_to(base.form)
        made, why = self._workshop.made(form), self._workshop.failure(form)
        if made is not None and made != base and made not in seen:
            seen[made] = choice
            return made
        if made is not None:
            why = "changes nothing" if made == base else f"the same as {seen[made].text}"
        self.found.note("decision", choice.text, None, False, why)
        return None

    def _heat(self, base: Made, heat: Mapping[Made, Choice]) -> list[tuple[Choice, Gain]]:
        """Measure some decisions beside the base; return those that seem to help."""
        race = self._race("decision")
        gains = race.screen(f"decision {self._heats}", base, [*heat])
        self._heats += 1
        helpful: list[tuple[Choice, Gain]] = []
        for made, choice in heat.items():
            gain = gains.get(made)
            if gain is None:
                reason = race.failures.get(made, "no time was left")
                self.found.note("decision", choice.text, None, False, reason)
                continue
            self._cache.keep(base.form, choice, gain)
            if gain.is_better or gain.ratio.median < 1 - USEFUL:
                helpful.append((choice, gain))
            else:
                self.found.note("decision", choice.text, gain, False, gain.verdict)
        self._forget(heat, base)
        return helpful

    def _together(self, base: Made, choices: Sequence[Choice]) -> Made:
        """Return the base with all decisions, or with those that pay one by one."""
        self._say("decisions together")
        if len(choices) > 1:
            form = with_choices(base.form, choices)
            taken = self._proved(base, form, "all that seem to help", choices)
            if taken is not None:
                return self._pruned(base, taken, choices)
        for choice in choices[:_MOST_SINGLE]:
            added = choice.added_to(base.form)
            base = self._proved(base, added, choice.text, [choice]) or base
        return base

    def _pruned(self, base: Made, whole: Made, choices: Sequence[Choice]) -> Made:
        """Return a form without the decisions that it does not need."""
        lacking: dict[Made, Choice] = {}
        for choice in choices:
            made = self._workshop.made(with_choices(base.form, [c for c in choices if c != choice]))
            lacking.update({} if made is None else {made: choice})
        gains = self._race("together").screen("needed", whole, [*lacking], both_ways=True)
        ratios = {made: gain.ratio.median for made, gain in gains.items()}
        if whole in lacking:  # it changes nothing beside the others
            ratios[whole] = 1.0
        able = [made for made, ratio in ratios.items() if ratio < 1 + USEFUL]
        if not able:
            return whole
        needless, best = [lacking[made] for made in able], min(able, key=lambda made: ratios[made])
        rest = [choice for choice in choices if choice not in needless] or [*choices[:1]]
        is_mutual = self._is_slower(with_choices(base.form, rest), best)
        if is_mutual:  # some stand in for one another, or against one another
            rest = [choice for choice in choices if choice != lacking[best]]
        self.found.taken = []
        taken = self._proved(base, with_choices(base.form, rest), "those that it needs", rest)
        if taken is None:
            self.found.accept(whole.form, choices)
            return whole
        return self._pruned(base, taken, rest) if is_mutual else taken

    def _is_slower(self, form: ModelForm, other: Made) -> bool:
        """Return whether a form seems slower than another one, or cannot be made."""
        made = self._workshop.made(form)
        if made is None:
            return True
        gains = self._race("together").screen("needed", other, [made], both_ways=True)
        return any(gain.ratio.median >= 1 + USEFUL for gain in gains.values())

    def _proved(
        self, base: Made, form: ModelForm, text: str, choices: Sequence[Choice]
    ) -> Made | None:
        """Return a form that is proved to be better than the base; None if it is not."""
        made = self._workshop.made(form)
        fault = self._workshop.failure(form) if made is None else self._fault(made)
        if made is None or fault:
            self.found.note("together", text, None, False, fault)
            return None
        race = self._race("together")
        gain = race.prove("together", made, base)
        is_taken = gain is not None and gain.is_better
        reason = race.failures.get(made, reason_of(gain))
        self.found.note("together", text, gain, is_taken, reason)
        if not is_taken:
            return None
        self.found.accept(form, choices)
        return made

    # --- confirmation -----------------------------------------------------------------------------

    def _confirm(self, base: Made, reference: Made, original: Made) -> None:
        """Hold the result against the reference, the original and rivals, on fresh rounds."""
        self._say("confirming")
        forms = [*dict.fromkeys((base, reference, original, *self._rivals))]
        at = {made: place for place, made in enumerate(forms)}
        pairs = [
            (at[one], at[other])
            for one in dict.fromkeys((base, reference))
            for other in forms
            if other not in {one, base}
        ]
        race = self._race("confirmation")
        gains = race.compare("confirmation", forms, pairs, apart=True) if pairs else {}
        best = base
        if base != reference:
            gain = gains.get((at[base], at[reference]))
            was_proved, reason = self.found.is_proved, reason_of(gain)
            self.found.is_proved = gain is not None and gain.is_better
            if was_proved and is_undecided(gain):
                self.found.is_proved, reason = True, "proved before; the time was over"
            self.found.accept(base.form)
            if not self.found.is_proved:
                best = reference
                self.found.fall_back(reference.form)
                self.found.notes.append(f"no form is proved to be better than {reference.form}")
            text = f"{base.form}, beside {reference.form}"
            self.found.note("confirmation", text, gain, best == base, reason)
        self._against_rivals(best, [original, *self._rivals], gains, at)
        of = self.found
        of.beside_reference = gains.get((at[base], at[reference])) if best == base else None
        of.beside_original = gains.get((at[best], at[original]))
        of.is_confirmed = True

    def _against_rivals(
        self,
        best: Made,
        rivals: Sequence[Made],
        gains: Mapping[Pair, Gain],
        at: Mapping[Made, int],
    ) -> None:
        """Let a file win that stays as it is, if the best form is proved to be worse."""
        ranked: list[tuple[float, Made]] = []
        for rival in dict.fromkeys(rivals):
            gain = gains.get((at[best], at[rival]))
            if rival == best:
                continue
            is_worse = gain is not None and gain.verdict == SLOWER
            self.found.note("confirmation", f"{best.form}, beside {rival.form}", gain, not is_worse,
                       reason_of(gain))  # fmt: skip
            if is_worse and gain is not None:
                ranked.append((gain.ratio.median, rival))
        if ranked:
            _, winner = max(ranked, key=lambda pair: pair[0])
            self.found.fall_back(winner.form)
            self.found.notes.append(f"{winner.form} is better than every form that was found")

    # --- forms ------------------------------------------------------------------------------------

    def _fault(self, made: Made) -> str:
        if made not in self._faults:
            self._faults[made] = self._workshop.fault(made)
        return self._faults[made]

    def _forget(self, forms: Iterable[Made], *kept: Made) -> None:
        for made in forms:
            if made not in (*kept, *self._kept, *self._rivals):
                self._workshop.forget(made)
