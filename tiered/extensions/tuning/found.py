"""What a search has come to so far: the best form that is proved, and all that was looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from tiered.extensions.tuning.model_forms import Choice, ModelForm
from tiered.extensions.tuning.race import Gain

Stage = Literal["start", "decision", "together", "confirmation"]


@dataclass(frozen=True)
class Tried:
    """A form or a decision that was looked at.

    Attributes:
        stage: of the search.
        text: the decision, or the settings of the form.
        gain: the ratio beside the reference of the stage; None if it was not measured.
        is_taken: whether the result has it.
        reason: why it was taken or not.
    """

    stage: Stage
    text: str
    gain: Gain | None
    is_taken: bool
    reason: str


@dataclass
class Found:
    """What a search has come to so far.

    Attributes:
        best: the form; it is proved to be faster than the reference, or is the reference.
        tried: in the order of the search.
        choices: the decisions that the best form has taken.
        taken: those of the form that the search goes on from.
        is_proved: whether what that form is made of is proved.
        beside_reference, beside_original: its ratios, None before they are measured.
        is_confirmed: whether the last stage came to its end.
        notes: what a reader should know.
    """

    best: ModelForm
    tried: list[Tried] = field(default_factory=list)
    choices: list[Choice] = field(default_factory=list)
    taken: list[Choice] = field(default_factory=list)
    is_proved: bool = True
    beside_reference: Gain | None = None
    beside_original: Gain | None = None
    is_confirmed: bool = False
    notes: list[str] = field(default_factory=list)

    def accept(self, form: ModelForm, choices: Sequence[Choice] = ()) -> None:
        """Take decisions; the form is the best so far if what it is made of is proved."""
        self.taken = [*self.taken, *choices]
        if self.is_proved:
            self.best, self.choices = form, self.taken

    def fall_back(self, form: ModelForm) -> None:
        """Take a form without decisions as the best."""
        self.taken, self.best, self.choices = [], form, []

    def note(self, stage: Stage, text: str, gain: Gain | None, taken: bool, reason: str) -> None:
        """Add a form or a decision that was looked at."""
        self.tried.append(Tried(stage, text, gain, taken, reason))
