"""Bisection: which rewrite of which pass first makes a model wrong.

Every rewrite has a number, so a run can stop after any of them. The numbers between a right run and
a wrong one are halved until one rewrite is left. What else it takes for that one to be wrong, delta
debugging finds.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import onnx

from tiered.control.report import PassResult
from tiered.debug.judges import Judge, OutputJudge
from tiered.debug.memory import Memory
from tiered.debug.runs import Attempt, Key, ModelLike, Subject
from tiered.debug.search import fewest, first_wrong
from tiered.debug.witness import Witness
from tiered.graph import Model, RewriteRecord
from tiered.registry import PassInfo
from tiered.runtime.numerics import Numerics

Kind = Literal["outputs", "view", "error"]
Say = Callable[[str], object]

BROKEN = "the view of the model contradicts itself: "


@dataclass(frozen=True)
class Blame:
    """The rewrite that is wrong.

    Attributes:
        kind: "outputs" (they differ, or the result does not run), "view" (the result contradicts
            itself: a type, a link, a name), "error" (the pass raised).
        symptom: what is wrong after it.
        number: of the rewrite, of `rewrites` in all; before that one nothing was wrong.
        pass_text: the pass, with options and scope; `info` is what is known of it.
        law, anchor: of the rewrite; the anchor is the node, "" where it is a whole pass.
        before, after: the nodes that it touched, as text.
        places: values of the main graph around it.
        needs: other rewrites without which it would not be wrong, if that was asked.
        runs: how many models were run to find out.
    """

    kind: Kind
    symptom: str
    number: int
    rewrites: int
    pass_text: str
    info: PassInfo
    law: str
    anchor: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    runs: int = 0

    @property
    def pass_name(self) -> str:
        return self.info.name

    def lines(self) -> Iterator[str]:
        """Yield what is known, line by line."""
        where = f", at node {self.anchor!r}" if self.anchor else ""
        yield f"{self.pass_text}, rewrite #{self.number} of {self.rewrites}{where}"
        yield f"  law    {self.law}"
        yield f"  wrong  {self.symptom.replace(chr(10), chr(10) + ' ' * 9)}"
        yield from (f"  - {line}" for line in self.before)
        yield from (f"  + {line}" for line in self.after)
        if self.needs:
            yield "  only together with"
            yield from (f"    {needed}" for needed in self.needs)
        yield f"  found with {self.runs} model runs"

    def __str__(self) -> str:
        return "\n".join(self.lines())


def bisect(
    source: ModelLike,
    *,
    passes: Any = None,
    judge: Judge | None = None,
    seed: int = 0,
    numerics: Numerics | None = None,
    interactions: bool = False,
    resume: str | os.PathLike[str] | None = None,
    say: Say | None = None,
    **settings: Any,
) -> Blame | None:
    """Return the first wrong rewrite of a pipeline on a model; None if the result is right.

    Args:
        source: the model: a file, or a proto.
        passes: as for `tiered.optimize`; the default pipeline if None.
        judge: what says whether a model is right; by default its outputs, on inputs made for it.
        seed, numerics: of the default judge.
        interactions: find also the fewest other rewrites without which it would not be wrong.
        resume: a file that keeps each verdict, so that an interrupted search goes on.
        say: told what is found, step by step.
        settings: of the context: opt_level, required, disabled, config, backend, strict.

    Raises:
        RuntimeFailure: the model itself does not run.
        UsageError: a wrong name, or a model that gives other outputs each time.
        ModelError: a file cannot be read or written.
    """
    subject = Subject(source, passes, settings)
    judge = judge or OutputJudge(source, seed=seed, numerics=numerics)
    search = Bisection(subject, judge, Memory.of(resume, subject, judge), say or _nobody)
    return search.blame(interactions=interactions)


class Bisection:
    """One search; `runs` counts the models that were run, the original not among them."""

    def __init__(self, subject: Subject, judge: Judge, memory: Memory, say: Say) -> None:
        self.subject = subject
        self.judge = judge
        self.memory = memory
        self.say = say
        self.runs = 0

    def blame(self, *, interactions: bool = False) -> Blame | None:
        """Return the first wrong rewrite, None if there is none."""
        log, failure = _Log(), FirstFailure()
        whole = self.subject.run(instruments=[log, failure])
        self.say(f"{whole.rewrites} rewrites by {len(set(log.infos))} passes")
        if whole.error is not None:
            if failure.result is None:
                raise whole.error
            return self._raised(whole, failure)
        wrong = self._wrong_end(whole, log)
        if wrong is None:
            return None
        number = first_wrong(0, wrong, self._is_wrong, log.ends())
        needs = self._needs(number, log) if interactions else ()
        return self._found(number, whole.rewrites, needs)

    def _wrong_end(self, whole: Attempt, log: _Log) -> int | None:
        """Return a number after which the model is wrong.

        What an exact pass breaks may be within what a later one is allowed, so the model is also
        judged as it was before each pass that promises less than those before it.
        """
        if self._verdict(whole.rewrites, whole):
            return whole.rewrites
        return next((number for number in log.stages() if self._is_wrong(number)), None)

    def _is_wrong(self, number: int) -> bool:
        return bool(self._verdict(number))

    def _verdict(self, number: int, whole: Attempt | None = None) -> str:
        """Return what is wrong with the model after so many rewrites; "" if nothing is."""
        return self._asked(
            f"the first {number}", lambda: whole or self.subject.run(number)
        )

    def _asked(self, question: str, attempt: Callable[[], Attempt]) -> str:
        known = self.memory.verdicts.get(question)
        if known is None:
            known = self._judged(attempt())
            self.memory.keep(question, known)
            self.say(f"run {self.runs}: {question} rewrites are {'wrong' if known else 'right'}")
        return known

    def _judged(self, attempt: Attempt) -> str:
        if attempt.error is not None:
            return str(attempt.error)
        try:
            attempt.model.check_view(types=True)
        except AssertionError as error:
            return f"{BROKEN}{error}"
        self.runs += 1
        return self.judge(attempt.model, attempt.changed_by)

    def _needs(self, number: int, log: _Log) -> tuple[str, ...]:
        """Return the fewest rewrites before a wrong one without which it would be right."""
        last = log.keys[number - 1]
        others = [key for key in dict.fromkeys(log.keys[: number - 1]) if key != last]
        numbers = {key: at for at, key in reversed(list(enumerate(log.keys, 1)))}

        def is_wrong(chosen: Sequence[Key]) -> bool:
            listed = " ".join(f"#{numbers[key]}" for key in (*chosen, last))
            attempt = {*chosen, last}
            return bool(self._asked(f"only {listed}", lambda: self.subject.run(chosen=attempt)))

        if not others or is_wrong([]) or not is_wrong(others):
            return ()
        return tuple(
            f"#{numbers[key]} {key[0]} at {key[1]!r}" for key in fewest(others, is_wrong)
        )

    def _found(self, number: int, total: int, needs: tuple[str, ...]) -> Blame:
        witness = Witness(number)
        self.subject.run(number, instruments=[witness])
        assert witness.info is not None, "the same number is the same rewrite in every run"
        symptom = self._verdict(number)
        return Blame(
            "view" if symptom.startswith(BROKEN) else "outputs",
            symptom,
            number,
            total,
            witness.pass_text,
            witness.info,
            witness.law,
            witness.anchor,
            tuple(witness.before),
            tuple(witness.after),
            tuple(witness.places),
            needs,
            self.runs,
        )

    def _raised(self, whole: Attempt, failure: FirstFailure) -> Blame:
        """Return the pass that raised, which needs no search."""
        result, number = failure.result, whole.rewrites + 1
        assert result is not None
        return Blame(
            "error",
            result.error or "",
            number,
            number,
            result.text,
            result.info,
            result.info.law or result.name,
            failure.anchor,
            places=failure.places,
        )


@dataclass
class _Log:
    """An instrument that notes which rewrites there are."""

    keys: list[Key] = field(default_factory=list)
    infos: list[PassInfo] = field(default_factory=list)

    def on_rewrite(self, model: Model, info: PassInfo, record: RewriteRecord) -> None:
        self.keys.append((info.name, record.node_name or record.graph.name))
        self.infos.append(info)

    def ends(self) -> list[int]:
        """Return the numbers after which another pass has its turn."""
        turns = zip(self.infos, self.infos[1:], strict=False)
        return [number for number, (one, other) in enumerate(turns, 1) if one is not other]

    def stages(self) -> list[int]:
        """Return the last numbers before a pass that promises less, the later ones first."""
        order = list(Numerics)
        found, loosest = [], 0
        for number, info in enumerate(self.infos):
            if order.index(info.numerics) > loosest:
                loosest = order.index(info.numerics)
                found.append(number)
        return [number for number in reversed(found) if number]


class FirstFailure:
    """An instrument that keeps the first pass that failed, and the model as it was before.

    Attributes:
        result: of that pass; None if none failed.
        model: before it, with the types that were known.
        anchor: the node that was being rewritten.
        places: values of the main graph there.
    """

    def __init__(self) -> None:
        self.result: PassResult | None = None
        self.model: onnx.ModelProto | None = None
        self.folder = ""
        self.anchor = ""
        self.places: tuple[str, ...] = ()

    def on_result(self, model: Model, result: PassResult) -> None:
        if result.error is None or result.info.kind == "pipeline" or self.result is not None:
            return
        self.result, self.anchor = result, model.gate.at
        self.model, self.folder = model.to_proto(annotate=True), model.folder
        self.places = tuple(_outputs_of(model, self.anchor))


def _outputs_of(model: Model, label: str) -> Iterator[str]:
    """Yield what the node of a name makes; of one in a body, the node that holds it."""
    for graph in model.graphs():
        for node in graph.nodes if label else ():
            if node.label == label:
                around = node
                while around.owner.owner is not None:
                    around = around.owner.owner
                yield from (value.name for value in around.outputs if value is not None)


def _nobody(_: str) -> None:
    """Say it to nobody."""
