"""From a blamed rewrite to a bundle: the part of the model around it that still shows the failure.

The smallest part is tried first: the nodes that the rewrite touched. Where the pass does not fail
on that, because it looks further, the part grows step by step, up to the whole model.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import onnx

from tiered.extensions.debug.blame import Bisection, Blame, FirstFailure
from tiered.extensions.debug.bundle import Bundle, Failure, symptom_of, versions
from tiered.extensions.debug.model_reduction import reduce_model
from tiered.extensions.debug.oracles import OutputOracle
from tiered.extensions.debug.pipeline_runs import ModelLike, Subject, opened, shaped
from tiered.extensions.debug.resume_file import ResumeFile
from tiered.graph.io.export import export_model
from tiered.passes import Pass
from tiered.pipeline.optimize import pipeline_of
from tiered.runtime.external_data import take_in
from tiered.runtime.inputs.samples import Source
from tiered.support.errors import TieredError
from tiered.targets import Backend
from tiered.verify.custom_ops import using
from tiered.verify.part_extraction import GraphPart, cut
from tiered.verify.sliced_session import bare_types

_SETTINGS = ("opt_level", "required", "disabled", "backend", "strict", "config")
_SECONDS = 30.0
"""How long a model on which a pass raises is made smaller, where no part around a node will do."""
STEPS = (0, 1, 2, 4, 8, 16)
"""How far from the rewrite, in nodes, the parts that are tried reach."""


def reproduce(subject: Subject, blame: Blame, feeds: Mapping[str, Any]) -> Bundle:
    """Return a bundle that shows a failure.

    Args:
        subject: the model and the pipeline.
        blame: the result of the bisection.
        feeds: inputs of the whole model on which it is wrong.

    Raises:
        RuntimeFailure: the model does not run as it was before the rewrite.
    """
    before, folder = _before(subject, blame)
    pass_ = subject.pass_of(blame.pass_text) or pipeline_of(blame.pass_text)
    failure = _failure(subject, blame, before)
    part = GraphPart.of(before)
    smallest = None
    for nodes in _parts(part, blame.places):
        smallest = _tried(part, nodes, pass_, failure, (feeds, folder))
        if smallest is not None:
            return smallest
    return _whole(before, folder, pass_, failure, feeds)


def _before(subject: Subject, blame: Blame) -> tuple[onnx.ModelProto, str]:
    """Return the model as it was before the rewrite, with the types that were known."""
    if blame.kind == "error":
        failed = FirstFailure()
        subject.run(instruments=[failed])
        if failed.model is not None:
            return failed.model, failed.folder
    model = subject.run(blame.number - 1).model
    # Declared types of a file are trusted; types that a pass states are to be checked.
    return model.to_proto(annotate=blame.kind != "view"), model.folder


def _failure(subject: Subject, blame: Blame, before: onnx.ModelProto) -> Failure:
    source = subject.source
    return Failure(
        blame.kind,
        blame.pass_text,
        blame.symptom,
        "",
        blame.info.numerics.value,
        blame.number,
        blame.law,
        blame.anchor,
        blame.before,
        blame.after,
        pass_source=os.path.basename(blame.info.source),
        pipeline=str(subject.pipeline),
        settings=_plain(subject.settings),
        model="" if isinstance(source, onnx.ModelProto) else os.path.basename(os.fspath(source)),
        nodes=(0, len(before.graph.node)),
        versions=versions(),
    )


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the context that can be written down, as plain data."""
    seen = {name: settings.get(name) for name in _SETTINGS}
    backend = seen["backend"]
    if isinstance(backend, Backend):
        seen["backend"] = backend.name
    for name in ("required", "disabled"):
        seen[name] = [str(entry) for entry in seen[name] or ()] or None
    return {name: value for name, value in seen.items() if value is not None}


def _parts(part: GraphPart, places: tuple[str, ...]) -> Iterator[set[int]]:
    """Yield larger and larger parts around some values; the whole is not among them."""
    whole = len(part.reads)
    known = -1
    for steps in STEPS:
        nodes = part.around(places, steps)
        if len(nodes) == whole or not nodes:
            return
        if len(nodes) != known:
            known = len(nodes)
            yield nodes


def _tried(
    part: GraphPart,
    nodes: set[int],
    pass_: Pass,
    failure: Failure,
    recorded: tuple[Mapping[str, Any], str],
) -> Bundle | None:
    """Return a bundle of a part of the model, if the pass fails on it too."""
    feeds, folder = recorded
    wanted = part.border(nodes)
    try:
        values = _recorded(part, wanted, feeds, folder)
        made = take_in(cut(part, nodes, bare_types(values)), folder)
        shown, after = symptom_of(pass_, made, values, failure)
    except TieredError:
        return None  # a larger part may run
    return _bundle(failure, shown, made, after, values) if shown else None


def _whole(
    before: onnx.ModelProto,
    folder: str,
    pass_: Pass,
    failure: Failure,
    feeds: Mapping[str, Any],
) -> Bundle:
    made = take_in(before, folder)
    try:
        shown, after = symptom_of(pass_, made, feeds, failure)
    except TieredError as error:
        shown, after = str(error), None
    if failure.kind == "error" and shown:
        made, shown = _reduced(made, pass_, failure, shown)
        inputs = {info.name for info in made.graph.input}
        feeds = {name: value for name, value in feeds.items() if name in inputs}
    return _bundle(failure, shown or failure.symptom, made, after, feeds)


def _reduced(
    model: onnx.ModelProto, pass_: Pass, failure: Failure, shown: str
) -> tuple[onnx.ModelProto, str]:
    """Return a smaller model on which a pass raises the same kinds of errors, and its error.

    The search ends at its deadline with its best result.
    """
    wanted, deadline = _kinds(shown), time.monotonic() + _SECONDS
    symptoms = {"": shown}

    def is_failing(part: onnx.ModelProto) -> bool:
        if time.monotonic() > deadline:
            return False
        try:
            found, _ = symptom_of(pass_, part, None, failure)
        except TieredError:
            return False  # it is no model
        if _kinds(found) != wanted:
            return False
        symptoms[""] = found
        return True

    try:
        return reduce_model(model, is_failing), symptoms[""]
    except TieredError:
        return model, shown  # it cannot be cut


def _kinds(message: str) -> tuple[str, ...]:
    """Return the kinds of errors that a message names, without the node."""
    return tuple(re.findall(r"\b[A-Za-z]+(?:Error|Exception)\b", message))


def _bundle(
    failure: Failure,
    shown: str,
    before: onnx.ModelProto,
    after: onnx.ModelProto | None,
    feeds: Mapping[str, Any],
) -> Bundle:
    nodes = (len(before.graph.node), failure.nodes[1])
    return Bundle(replace(failure, shown=shown, nodes=nodes), before, after, feeds)


def _recorded(
    part: GraphPart, names: Sequence[str], feeds: Mapping[str, Any], folder: str
) -> dict[str, Any]:
    """Return values of a run of the whole model.

    Raises:
        RuntimeFailure: it does not run.
    """
    missing = [name for name in names if name not in feeds]
    found = {name: feeds[name] for name in names if name in feeds}
    if missing:
        probe = cut(part, part.needed(missing), {}, missing)
        with opened(probe, folder) as session:
            found |= session.run({name: feeds[name] for name in session.inputs if name in feeds})
    return found


def sample_of(oracle: object, subject: Subject, seed: int = 0) -> Mapping[str, Any]:
    """Return the inputs of an oracle, or made ones."""
    if not isinstance(oracle, OutputOracle):
        limits = subject.context().backend.verification
        oracle = OutputOracle(subject.source, seed=seed, folder=subject.folder, limits=limits)
    return oracle.sample.feeds


def write_reproducer(
    source: ModelLike,
    folder: str | os.PathLike[str],
    *,
    passes: Any = None,
    inputs: Sequence[Source] = (),
    seed: int = 0,
    edits: Sequence[Any] = (),
    input_shapes: Mapping[str, Sequence[int | str]] | None = None,
    within: tuple[int, int] | None = None,
    **settings: Any,
) -> Blame | None:
    """Find out which rewrite of a pipeline is wrong, and write a bundle that shows it.

    Args:
        source: the model.
        folder: of the bundle.
        passes, settings: the failed run.
        inputs: files or arrays on which it failed; made if there are none.
        seed: of the inputs that are made.
        edits, input_shapes: as for `tiered.optimize`.
        within: the first and the last rewrite that may be to blame, where a `VerificationError`
            says so (`rewrites`).

    Returns:
        what is to blame; None, and no bundle, if nothing is wrong.
    """
    source, home = shaped(source, input_shapes)
    subject = Subject(source, passes, settings, home, edits)
    with using(subject.context().backend):
        oracle = _oracle(subject, inputs, seed, within)
        blame = Bisection(subject, oracle, ResumeFile(), lambda _: None, within).blame()
        if blame is not None:
            reproduce(subject, blame, oracle.sample.feeds).save(folder)
    return blame


def _oracle(
    subject: Subject, inputs: Sequence[Source], seed: int, within: tuple[int, int] | None
) -> OutputOracle:
    """Return an oracle that compares models with the one before the first suspect."""
    limits = subject.context().backend.verification
    if within is None:
        return OutputOracle(subject.source, inputs, seed, folder=subject.folder, limits=limits)
    before = subject.run(within[0] - 1).model
    proto = export_model(before, is_bare=True)
    return OutputOracle(proto, inputs, seed, folder=before.folder, limits=limits)
