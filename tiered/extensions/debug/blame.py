"""Bisection: the first rewrite that makes a model wrong.

Every rewrite has a number, so a run can stop after any of them. The numbers between a right run and
a wrong one are halved until one rewrite is left. What else it takes for that one to be wrong, delta
debugging finds.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import onnx

from tiered.extensions.debug.oracles import Oracle, OutputOracle
from tiered.extensions.debug.pipeline_runs import Key, ModelLike, Subject, shaped
from tiered.extensions.debug.recorder import History, Recorder, RewriteFacts
from tiered.extensions.debug.resume_file import ResumeFile
from tiered.extensions.debug.rewrite_search import fewest, first_wrong
from tiered.graph import Model, RewriteRecord
from tiered.passes.interface.pass_info import PassInfo, PassResult
from tiered.runtime.inputs.samples import Source
from tiered.support.amounts import counted
from tiered.support.errors import ModelError, TieredError
from tiered.support.numerics import Numerics
from tiered.verify.custom_ops import using

Kind = Literal["outputs", "view", "error", "cannot run"]

_CANNOT_RUN: Final = "cannot run: "
"""The beginning of the symptom of a model with an operator that nothing defines."""

Say = Callable[[str], object]


@dataclass(frozen=True)
class Blame:
    """The rewrite that is wrong.

    Attributes:
        kind: "outputs" (they differ, or the result does not run), "view" (the result contradicts
            itself: a type, a link, a name), "error" (the pass raised), "cannot run" (an operator
            that no runtime knows: whether the pass is right is not known).
        symptom: the failure after it.
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
        """Yield the text, line by line."""
        where = f", at node {self.anchor!r}" if self.anchor else ""
        yield f"{self.pass_text}, rewrite #{self.number} of {self.rewrites}{where}"
        yield f"  law    {self.law}"
        symptom = self.symptom.replace(chr(10), chr(10) + " " * 9)
        yield f"  {symptom}" if self.kind == "cannot run" else f"  wrong  {symptom}"
        yield from (f"  - {line}" for line in self.before)
        yield from (f"  + {line}" for line in self.after)
        if self.needs:
            yield "  only together with"
            yield from (f"    {needed}" for needed in self.needs)
        yield f"  found with {counted(self.runs, 'model run')}"

    def __str__(self) -> str:
        return "\n".join(self.lines())


def bisect(
    source: ModelLike,
    *,
    passes: Any = None,
    oracle: Oracle | None = None,
    inputs: Sequence[Source] = (),
    seed: int = 0,
    numerics: Numerics | None = None,
    interactions: bool = False,
    resume: str | os.PathLike[str] | None = None,
    say: Say | None = None,
    edits: Sequence[Any] = (),
    input_shapes: Mapping[str, Sequence[int | str]] | None = None,
    **settings: Any,
) -> Blame | None:
    """Return the first wrong rewrite of a pipeline on a model; None if the result is right.

    Args:
        source: the model: a file, or a proto.
        passes: as for `tiered.optimize`; the default pipeline if None.
        oracle: decides whether a model is right; by default by its outputs on generated inputs.
        inputs, seed, numerics: of the default oracle.
        interactions: find also the fewest other rewrites without which it would not be wrong.
        resume: a file that keeps each verdict, so that an interrupted search goes on.
        say: called with each finding.
        edits, input_shapes: as for `tiered.optimize`; the model that has these shapes counts as the
            original.
        settings: of the context: opt_level, required, disabled, config, backend, strict.

    Raises:
        RuntimeFailure: the model itself does not run.
        UsageError: a wrong name, or a model with random outputs.
        ModelError: a file cannot be read or written.
    """
    source, folder = shaped(source, input_shapes)
    subject = Subject(source, passes, settings, folder, edits)
    backend = subject.context().backend
    with using(backend):
        limits = backend.verification
        oracle = oracle or OutputOracle(source, inputs, seed, numerics, folder, limits)
        search = Bisection(subject, oracle, ResumeFile.of(resume, subject, oracle), say or _ignore)
        return search.blame(interactions=interactions)


class Bisection:
    """One search; `runs` counts the models that were run, the original not among them."""

    def __init__(
        self,
        subject: Subject,
        oracle: Oracle,
        memory: ResumeFile,
        say: Say,
        within: tuple[int, int] | None = None,
    ) -> None:
        """Begin a search.

        Args:
            subject, oracle, memory, say: as for `bisect`.
            within: the first and the last rewrite that may be to blame, where that is known; the
                oracle then compares the model with the one before the first.
        """
        first = within[0] if within else 1
        self._limit = within[1] if within else None
        self.subject = subject
        self.oracle = oracle
        self.memory = memory
        self.say = say
        self.runs = 0
        self.log = _Log()
        self.history = History()
        self.recorder = Recorder()
        self._model: Model | None = None
        self._has_failed = False
        self._at = self._end = 0
        # Up to here all is right, as far as onnxruntime is.
        self._good = self._start = first - 1

    def blame(self, *, interactions: bool = False) -> Blame | None:
        """Return the first wrong rewrite, None if there is none."""
        failure = FirstFailure()
        watching = (self.log, self.history, self.recorder, failure)
        whole = self.subject.run(self._limit, instruments=watching)
        total, passes = whole.rewrites, len(set(self.log.infos))
        self.say(f"{counted(total, 'rewrite')} by {counted(passes, 'pass', 'passes')}")
        if whole.error is None:
            self._model, self._at, self._end = whole.model, total, total
            wrong = self._wrong_end()
        elif failure.result is None:
            raise whole.error
        else:
            # The error may be due to an earlier pass. Its own rewrites were
            # undone: a run that is limited to some of them would raise again.
            self._has_failed = True
            began = failure.began
            is_earlier = began and self._verdict(began) and not self._verdict(self._start)
            wrong = began if is_earlier else None
        number = self._first_inexcusable(wrong)
        # A type that is wrong does no harm until another pass believes it.
        end = number - 1 if number else total
        if whole.error is None and self._contradiction(end):
            number = self._first(end, self._contradiction, self._start)
            return self._found(number, "view", self._contradiction(number))
        if number:
            symptom = self._verdict(number)
            needs = self._needs(number) if interactions else ()
            kind: Kind = "cannot run" if symptom.startswith(_CANNOT_RUN) else "outputs"
            return self._found(number, kind, symptom, needs)
        return self._raised(total + 1, failure) if failure.result else None

    def _first(self, wrong: int, symptom: Callable[[int], str], good: int = 0) -> int:
        return first_wrong(good, wrong, lambda number: bool(symptom(number)), self.log.ends())

    def _first_inexcusable(self, wrong: int | None) -> int:
        """Return the first wrong rewrite that has no excuse; 0 if there is none.

        Args:
            wrong: a number after which the outputs are wrong.
        """
        while wrong is not None:
            number = self._first(wrong, self._verdict, self._good)
            excuse = self._excuse(number)
            if not excuse:
                return number
            self.say(f"rewrite #{number} is excused: {excuse}")
            self._good = number
            wrong = self._wrong_end()
        return 0

    def _excuse(self, number: int) -> str:
        """Return why a rewrite is right although outputs differ around it; "" if it is not."""
        numbers = (number - 1, number)
        if not isinstance(self.oracle, OutputOracle) or not self.history.is_whole:
            return ""
        before, after = map(self.history.model_after, numbers)
        try:
            return self.oracle.excuse(before, after, self.log.infos[number - 1])
        except TieredError:  # it does not run
            return ""

    def _wrong_end(self) -> int | None:
        """Return a number after which the outputs are wrong.

        A difference by an exact pass may be within the tolerance of a later one, so the model is
        also compared before each pass that promises less than those before it.
        """
        ends = [len(self.log.infos), *self.log.stages()]
        later = (number for number in ends if number > self._good)
        return next((number for number in later if self._verdict(number)), None)

    def model_at(self, number: int) -> Model:
        """Return the model after `number` rewrites: by undoing the later ones, where it has them.

        Raises:
            TieredError: a pass raises.
        """
        if self._model is None or self._at < number:
            until = [_UntilLimit()] if self._has_failed else []
            attempt = self.subject.run(number, instruments=until)
            if attempt.error is not None:
                raise attempt.error
            self._model, self._at = attempt.model, number
        elif self._at > number:
            self._model.undo_to(self.log.marks[number])
            self._at = number
        return self._model

    def _verdict(self, number: int) -> str:
        """Return the difference of the outputs after `number` rewrites; "" if there is none."""
        changed_by = tuple(dict.fromkeys(self.log.infos[self._start : number]))

        def failure() -> str:
            try:
                if isinstance(self.oracle, OutputOracle) and self._is_recorded(number):
                    return self.oracle.failure_of(self.history.model_after(number), changed_by)
                model = self.model_at(number)
            except TieredError as error:
                return f"{type(error).__name__}: {error}"
            return self.oracle(model, changed_by)

        is_excused = self._good > self._start
        since = f", once #{self._good} is excused" if is_excused else ""
        return self._asked(f"rewrites up to #{number}{since}", failure)

    def _is_recorded(self, number: int) -> bool:
        """Return whether only the history has the model after `number` rewrites."""
        return self.history.is_whole and number < self._end and number != self._at

    def _contradiction(self, number: int) -> str:
        """Return where the model contradicts itself after `number` rewrites; "" if it does not."""
        try:
            self.model_at(number).check_view(types=True)
        except AssertionError as error:
            return str(error)
        return ""

    def _asked(self, question: str, failure: Callable[[], str]) -> str:
        known = self.memory.verdicts.get(question)
        if known is None:
            known = failure()
            self.runs += 1
            self.memory.keep(question, known)
            self.say(f"run {self.runs}: {question}: {_verdict(known)}")
        return known

    def _needs(self, number: int) -> tuple[str, ...]:
        """Return the fewest rewrites before a wrong one without which it would be right."""
        keys = self.log.keys
        last = keys[number - 1]
        others = [key for key in dict.fromkeys(keys[: number - 1]) if key != last]
        numbers = {key: at for at, key in reversed(list(enumerate(keys, 1)))}

        def is_wrong(chosen: Sequence[Key]) -> bool:
            alone = " ".join(f"#{numbers[key]}" for key in (*chosen, last))
            question = f"rewrites {alone} alone"
            return bool(self._asked(question, lambda: self._chosen({*chosen, last})))

        if not others or is_wrong([]) or not is_wrong(others):
            return ()
        return tuple(f"#{numbers[key]} {key[0]} at {key[1]!r}" for key in fewest(others, is_wrong))

    def _chosen(self, chosen: set[Key]) -> str:
        """Return the failure of the model after some of the rewrites alone."""
        attempt = self.subject.run(chosen=chosen)
        if attempt.error is not None:
            return str(attempt.error)
        return self.oracle(attempt.model, attempt.changed_by)

    def _found(self, number: int, kind: Kind, symptom: str, needs: Sequence[str] = ()) -> Blame:
        facts = self.recorder.by_number[number]
        assert facts.info is not None, "it was noted with its number"
        return Blame(
            kind,
            symptom,
            number,
            len(self.log.infos),
            facts.pass_text,
            facts.info,
            facts.law,
            facts.anchor,
            tuple(facts.before),
            tuple(facts.after),
            tuple(facts.places),
            tuple(needs),
            self.runs,
        )

    def _raised(self, number: int, failure: FirstFailure) -> Blame:
        """Return the pass that raised itself."""
        result = failure.result
        assert result is not None
        # A rule without end raises at a node of its own, which is gone: its first rewrite is not.
        first = self.recorder.by_number.get(failure.began + 1)
        cause = self._cause(failure) if not failure.anchor else None
        at = cause or first
        places = failure.places or (tuple(at.places) if at is not None else ())
        return Blame(
            "error",
            result.error or "",
            number,
            number,
            result.text,
            result.info,
            result.info.law or result.name,
            failure.anchor if cause is None else cause.anchor,
            places=places,
            runs=self.runs,
        )

    def _cause(self, failure: FirstFailure) -> RewriteFacts | None:
        """Return the rewrite without which a pass does not raise at its end, as for a cycle."""
        began, last = failure.began, max(self.recorder.by_number, default=0)
        if last <= began or self._raises(began):
            return None
        return self.recorder.by_number[first_wrong(began, last, self._raises)]

    def _raises(self, number: int) -> bool:
        return self.subject.run(number).error is not None


@dataclass
class _Log:
    """An instrument that notes which rewrites there are; `marks` are the places in the journal."""

    keys: list[Key] = field(default_factory=list)
    infos: list[PassInfo] = field(default_factory=list)
    marks: list[int] = field(default_factory=lambda: [0])

    def on_rewrite(self, model: Model, info: PassInfo, record: RewriteRecord) -> None:
        self.keys.append((info.name, record.node_name or record.graph.name))
        self.infos.append(info)
        self.marks.append(model.mark())

    def ends(self) -> list[int]:
        """Return the numbers after which another pass runs."""
        pairs = zip(self.infos, self.infos[1:], strict=False)
        return [number for number, (one, other) in enumerate(pairs, 1) if one is not other]

    def stages(self) -> list[int]:
        """Return the last numbers before a pass that promises less, the later ones first."""
        order = list(Numerics)
        found, loosest = [], 0
        for number, info in enumerate(self.infos):
            if order.index(info.numerics) > loosest:
                loosest = order.index(info.numerics)
                found.append(number)
        return [number for number in reversed(found) if number]


class _UntilLimit:
    """An instrument that runs no pass once the limit of rewrites is reached."""

    def should_run(self, model: Model, info: PassInfo) -> bool:
        return not model.gate.is_shut()


class FirstFailure:
    """An instrument that keeps the first pass that failed, and the model as it was before.

    Attributes:
        result: of that pass; None if none failed.
        model: before it, with the types that were known.
        anchor: the node that was being rewritten.
        places: values of the main graph there.
        began: how many rewrites there were when the pass began.
    """

    def __init__(self) -> None:
        self.began = 0
        self._begun: list[int] = []
        self._last = 0
        self.result: PassResult | None = None
        self.model: onnx.ModelProto | None = None
        self.folder = ""
        self.anchor = ""
        self.places: tuple[str, ...] = ()

    def run_before_pass(self, model: Model, info: PassInfo) -> None:
        self._begun.append(model.gate.count)

    def run_after_pass(self, model: Model, info: PassInfo) -> None:
        self._last = self._begun.pop()

    def run_after_pass_failed(self, model: Model, info: PassInfo, error: BaseException) -> None:
        self._last = self._begun.pop()

    def on_result(self, model: Model, result: PassResult) -> None:
        if result.error is None or result.info.kind == "pipeline" or self.result is not None:
            return
        self.began = self._last
        self.anchor, self.folder = model.gate.at, model.folder
        self.places = tuple(_outputs_of(model, self.anchor))
        self.result = result
        with contextlib.suppress(ModelError):  # an earlier pass may have left it invalid
            self.model = model.to_proto(annotate=True)


def _outputs_of(model: Model, label: str) -> Iterator[str]:
    """Yield the outputs of a named node; for a node in a body, those of the node around it."""
    for graph in model.graphs():
        for node in graph.nodes if label else ():
            if node.label == label:
                around = node
                while around.owner.parent_node is not None:
                    around = around.owner.parent_node
                yield from (value.name for value in around.outputs if value is not None)


def _ignore(_: str) -> None:
    """Ignore a finding."""


def _verdict(symptom: str) -> str:
    if symptom.startswith(_CANNOT_RUN):
        return "cannot run"
    return "wrong" if symptom else "right"
