"""Notes on settings without effect, such as options of a pass that did not run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from tiered.passes import Pass
from tiered.passes.interface.registry import is_glob, registry
from tiered.pipeline.edits import USER
from tiered.support.amounts import counted
from tiered.support.errors import PassNotFoundError, TargetError, UsageError

if TYPE_CHECKING:
    from tiered.context import PassContext
    from tiered.graph import Model
    from tiered.passes.interface.pass_info import NodeNote, PassInfo
    from tiered.pipeline.pipeline_base import Pipeline
    from tiered.targets.pipeline_edits import PipelineEdit

_RESULT: Final = re.compile(r"=>\s*([A-Z]\w*)\(")
"""The operator of a result in a law."""

_LAST: Final = "final_check"
"""The end of each whole pipeline: one that was printed has rules for other models, too."""


def note_idle(
    context: PassContext, edits: Iterable[PipelineEdit | str], required: Iterable[Pass | str]
) -> None:
    """Add a remark for each edit and each required pass without an effect.

    An edit has none if it sets options of a pass that never ran. An opt-in pass is named if it
    changed nothing, another one if it did so for a reason that concerns no node.

    Args:
        context: the context of the run, left by now.
        edits: those of the user.
        required: the entries of the user.
    """
    for edit in _edits(edits):
        if edit.kind == "set":
            _note_edit(context, edit)
    for entry in required:
        _note_required(context, entry)


def check_asked(
    context: PassContext,
    required: Iterable[Pass | str],
    listed: Pipeline | None,
    given: str | Iterable[Pass | str] | None,
    edits: Iterable[PipelineEdit | str],
    model: Model,
) -> None:
    """Raise if a pass that was asked for by name cannot do what it was asked for.

    Args:
        context: the context of the run.
        required: the entries of the user.
        listed: the pipeline of the user, if there is one.
        given: the same as it was given: what a glob in it stands for is not asked for by name.
        edits: those of the user, which may insert passes.
        model: the result.

    Raises:
        TargetError: there is one.
    """
    required = tuple(required)
    heads = [entry.partition("@")[0] if isinstance(entry, str) else entry for entry in required]
    named = {name for entry in heads for name in _names(_name_of(entry))[:1]}
    inserted = _exact(each.passes for each in _edits(edits) if each.kind not in ("drop", "set"))
    for name in sorted(named | inserted | _exact(given)):
        reason = _too_early(registry.named(name).info, context, model)
        results = context.report.of(name)
        has_run = any(result.ran for result in results)
        if reason and has_run and not any(result.changed for result in results):
            raise TargetError(f"{name} cannot do what it is asked for: {reason}")
    asked = {name for entry in required for name in _names(_name_of(entry))} | inserted
    asked.update(leaf.name for leaf in (listed.leaves() if listed is not None else ()))
    for name in sorted(asked):
        results = [result for result in context.report.of(name) if not result.needed_by]
        is_idle = not any(result.changed for result in results)
        reasons = dict.fromkeys(
            reason for result in results for reason in (result.unable if is_idle else result.unmet)
        )
        if reasons:
            raise TargetError(f"{name} cannot do what it is asked for: {'; '.join(reasons)}")


def _exact(entries: Pass | str | Iterable[Pass | str] | None) -> set[str]:
    """Return the passes that entries, or the text of a pipeline, name one by one."""
    if isinstance(entries, Pass):
        return set(_names(_name_of(entries)))
    if not isinstance(entries, str):
        # Of an object with `call` the name is no pass that is registered.
        listed = entries if isinstance(entries, Iterable) else ()
        return set[str]().union(*map(_exact, listed))
    from tiered.pipeline.text import names_in

    words = (entries,) if registry.expects(entries) else names_in(entries)
    if _LAST in words:
        return set()
    return {name for word in words for name in _names(_name_of(word))[:1]}


def _too_early(info: PassInfo, context: PassContext, model: Model) -> str:
    """Return why a rule can rewrite nothing at the opset of a model: its operators are newer."""
    from tiered.targets.shared_rules import in_newer_opset

    made = _RESULT.findall(info.law)
    if info.kind != "rewrite" or info.makes or len(made) != info.law.count("=>"):
        return ""
    opset = max(model.opset(), *(each.opset() for each in model.functions), 0)
    refusals = [in_newer_opset(name, opset) for name in made]
    if not made or not all(refusals):
        return ""
    allowed = [entry.rpartition("::") for entry in info.may_make]
    is_known = context.names_backend and context.target.supports
    if is_known and any(is_known(name, domain) for domain, _, name in allowed):
        return ""
    return f"{refusals[0]}; `tiered convert --opset` raises it"


def check_met(context: PassContext) -> None:
    """Raise if no pass of the run is the one that a name requires.

    Raises:
        UsageError: there is such a name.
    """
    for entry in (each.text for each in context.unmet()):
        if not is_glob(entry):
            raise UsageError(
                f"{entry} is required, but it is no pass of this pipeline; list it among the "
                f"passes to run, or add it by an edit: 'after fold_constant: {entry}'"
            )


def _edits(edits: Iterable[PipelineEdit | str]) -> tuple[PipelineEdit, ...]:
    if not edits:
        return ()
    from tiered.targets.pipeline_edits import edits_of

    return edits_of(edits, USER)


def _note_edit(context: PassContext, edit: PipelineEdit) -> None:
    for name in _names(edit.target.partition(":")[0]):
        results = context.report.of(name)
        if results and not any(result.ran for result in results):
            text = f"the edit '{edit}' has no effect, as {name} did not run: {results[0].reason}"
            if registry.named(name).info.opt_level is None:
                text += f"; require {name}"
            context.report.note("unmet", text)


def _note_required(context: PassContext, entry: Pass | str) -> None:
    for name in _names(_name_of(entry)):
        results = context.report.of(name)
        ran = [result for result in results if result.ran]
        if not ran or any(result.changed for result in ran):
            continue
        missed = list(dict.fromkeys(note for result in ran for note in result.missed))
        found = list(dict.fromkeys(note for result in ran for note in result.found))
        info = registry.named(name).info
        # A pass with a level is required to run, not to change something.
        is_request = info.opt_level is None and not info.analysis
        if is_request or (missed and not found and not any(note.label for note in missed)):
            reasons = _reasons(missed or found)
            context.report.note("unmet", f"required {name} did nothing: {reasons}")


def _reasons(notes: Sequence[NodeNote]) -> str:
    """Return why a pass changed nothing: what it said of the model, else of the first node."""
    said = sorted({note.reason for note in notes if not note.label})
    if said:
        return "; ".join(said)
    if not notes:
        return "the model has nothing that it rewrites"
    others = counted(len(notes) - 1, "more node stays as it is", "more nodes stay as they are")
    more = f", and {others}" if len(notes) > 1 else ""
    return f"{notes[0].label}: {notes[0].reason}{more}"


def _name_of(entry: Any) -> str:
    """Return the name in an entry of `required`; "" for a glob, a group or a scope."""
    text = entry if isinstance(entry, str) else entry.name
    return "" if is_glob(text) or "@" in text or "/" in text else text.partition("{")[0]


def _names(name: str) -> tuple[str, ...]:
    """Return the canonical names of a pass; none for a group."""
    try:
        return registry.resolve(name.partition(":")[0]) if name else ()
    except PassNotFoundError:
        return ()
