"""The result of a search: the form, why it is that, and how to make it again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tiered.extensions.tuning.decision_text import backend_toml, pipeline_text
from tiered.extensions.tuning.found import Found, Tried
from tiered.extensions.tuning.maker import Maker
from tiered.extensions.tuning.model_forms import UNTOUCHED, Choice, Made, ModelForm
from tiered.extensions.tuning.output_tolerance import OutputTolerance
from tiered.extensions.tuning.race import Gain
from tiered.support.errors import RuntimeFailure, TieredError


@dataclass(frozen=True)
class Tuned:
    """What tuning came to.

    Attributes:
        form: the settings of the result.
        reference: the form that it had to beat.
        tried: what was looked at, in order.
        choices: the decisions that it takes beside those of its level and backend.
        beside_reference, beside_original: ratios of its cost; None if they are not known.
        pipeline: its passes as text for `--passes`; "" for a file as it is.
        backend: a backend in TOML that keeps its decisions; "" for a file as it is.
        nodes, nbytes: of the result.
        measured: how many rounds were measured, and `reused` how many decisions were known.
        is_complete: whether the search came to its end.
        remarks: what a reader should know.
    """

    form: ModelForm
    reference: ModelForm
    tried: tuple[Tried, ...]
    choices: tuple[Choice, ...]
    beside_reference: Gain | None
    beside_original: Gain | None
    pipeline: str
    backend: str
    nodes: int
    nbytes: int
    measured: int
    reused: int
    is_complete: bool
    remarks: tuple[str, ...]

    @classmethod
    def of(
        cls,
        found: Found,
        reference: ModelForm,
        budget: OutputTolerance,
        maker: Maker,
        *,
        is_complete: bool,
        fault: Callable[[Made], str],
        measured: int,
        hits: int,
    ) -> Tuned:
        """Return the result of a search, held to the budget.

        A reference that nothing beat may exceed it: the original never does.

        Raises:
            TieredError: the model cannot be read.
        """
        best, remarks = found.best, [*found.notes]
        made = maker.made(best)
        wrong = maker.failure(best) if made is None else fault(made)
        if made is None or wrong:
            remarks.append(f"{best} exceeds the budget {budget}: {wrong}; the original is kept")
            best = ModelForm(None)
            made = maker.made(best)
            if made is None:
                raise RuntimeFailure(maker.failure(best))
        if not is_complete:
            remarks.append("interrupted: the result is the best that was proved until then")
        is_best, pipeline, backend = best == found.best, "", ""
        if best.level is not None:
            pipeline = pipeline_text(best)
            backend = backend_toml(best, "tuned", [choice.text for choice in found.choices])
            remarks += _wrong_replays(best, made, maker, pipeline)
        return cls(
            best, reference, tuple(found.tried), tuple(found.choices if is_best else ()),
            found.beside_reference if is_best else None,
            found.beside_original if is_best else None,
            pipeline, backend, made.nodes, made.nbytes, measured, hits, is_complete,
            tuple(remarks),
        )  # fmt: skip

    @property
    def settings(self) -> dict[str, Any]:
        """The settings with which `tiered.optimize` makes it; of a file as it is, none."""
        return self.form.settings

    def to_dict(self) -> dict[str, Any]:
        """Return all of it in JSON types."""
        return {
            "form": str(self.form),
            "options": list(self.form.options),
            "file": self.form.file,
            "is_original": str(self.form) == UNTOUCHED,
            "reference": str(self.reference),
            "beside_reference": _ratio(self.beside_reference),
            "beside_original": _ratio(self.beside_original),
            "decisions": [choice.text for choice in self.choices],
            "tried": [
                {
                    "stage": each.stage,
                    "text": each.text,
                    "gain": _ratio(each.gain),
                    "taken": each.is_taken,
                    "reason": each.reason,
                }
                for each in self.tried
            ],
            "pipeline": self.pipeline,
            "backend": self.backend,
            "nodes": self.nodes,
            "bytes": self.nbytes,
            "rounds": self.measured,
            "reused": self.reused,
            "interrupted": not self.is_complete,
            "remarks": list(self.remarks),
        }


def _ratio(gain: Gain | None) -> dict[str, Any] | None:
    if gain is None:
        return None
    ratio = gain.ratio
    return {
        "low": ratio.low,
        "median": ratio.median,
        "high": ratio.high,
        "confidence": ratio.confidence,
        "rounds": gain.rounds,
        "verdict": gain.verdict,
    }


def _wrong_replays(form: ModelForm, made: Made, maker: Maker, pipeline: str) -> Iterator[str]:
    """Yield a remark if the pipeline as text does not make the same bytes."""
    try:
        again = maker.digest_with(pipeline, form)
    except TieredError as error:
        yield f"the pipeline as text fails: {error}; use the options"
        return
    if again != made.digest:
        yield "the pipeline as text makes another model; use the options, which make this one"
