"""A tuned decision as text: the pipeline for `--passes`, and a backend in TOML."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Final

from tiered.context import PassContext
from tiered.extensions.tuning.model_forms import ModelForm
from tiered.passes import Pass
from tiered.passes.interface.pass_info import Decision, Place
from tiered.passes.policy.node_scope import Scope, inverse
from tiered.pipeline.edits import pipeline_for
from tiered.pipeline.fixpoint import Fixpoint
from tiered.pipeline.pipeline_base import Pipeline
from tiered.pipeline.sequential import Sequential

_API: Final = 1


def pipeline_text(form: ModelForm) -> str:
    """Return the passes that a form runs, as `--passes` takes them; "" for a file as it is."""
    if form.level is None:
        return ""
    settings = {name: value for name, value in form.settings.items() if name != "edits"}
    context = PassContext(**settings)
    pipeline = pipeline_for(context.target, form.edits)
    place = Place()
    return Sequential(_taken(pipeline, context, place)).text


def _taken(pipeline: Pipeline, context: PassContext, place: Place) -> Iterator[Pass]:
    """Yield the passes that run, in the groups that they are in."""
    for pass_, where in pipeline.places(place):
        decision = context.decide(pass_, where)
        if not decision:
            continue
        if isinstance(pass_, Sequential):
            inner = [*_taken(pass_, context, where)]
            if inner:
                yield Sequential(inner, name=pass_.group or None)
        elif isinstance(pass_, Fixpoint):
            inner = [*_taken(pass_, context, where)]
            if inner:
                yield Fixpoint(inner, **pass_.options)
        else:
            yield _scoped(pass_, decision)


def _scoped(pass_: Pass, decision: Decision) -> Pass:
    """Return a pass bound to the nodes that its decision is about."""
    if decision.nodes is None:
        return pass_
    for scope, runs in decision.nodes.scoped:
        pass_ = pass_.on(scope if runs else inverse(scope))
    return pass_


def backend_toml(form: ModelForm, name: str, why: Sequence[str]) -> str:
    """Return a backend that keeps the decisions of a form; "" for a file as it is.

    Args:
        form: the decisions; its level is not part of a backend.
        name: of the backend.
        why: lines about how they were found.
    """
    if form.level is None:
        return ""
    lines = [
        *(f"# {line}" for line in why),
        f"# Use it with: tiered optimize MODEL OUT -O{form.level} --backend FILE",
        f"api_version = {_API}",
        f"name = {_quoted(name)}",
        f"extends = {_quoted(form.backend or 'portable')}",
        'doc = "Decisions that tiered tune measured."',
        *(line for edit, reason in _edits(form) for line in _table(edit, reason)),
    ]
    return "\n".join(lines) + "\n"


def _table(edit: str, why: str) -> Iterator[str]:
    yield ""
    yield "[[pipeline]]"
    yield f"edit = {_quoted(edit)}"
    yield f"why = {_quoted(why)}"


def _quoted(text: str) -> str:
    """Return a basic string of TOML: JSON escapes all that it must not hold but one character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _edits(form: ModelForm) -> Iterator[tuple[str, str]]:
    """Yield the edits that stand for what is required and disabled, each with its reason."""
    from tiered.targets import get_backend

    pipeline = pipeline_for(get_backend(form.backend or "portable"), form.edits)
    for edit in form.edits:
        yield edit, "better so"
    scopes: dict[str, list[Scope]] = {}
    for name in form.disabled:
        pass_name, at, _ = name.partition("@")
        if at:
            (parsed,) = Sequential(name).passes
            scopes.setdefault(pass_name, []).extend([parsed.scope] if parsed.scope else [])
        else:
            yield f"drop {name}", "better without it"
    for name, excepted in scopes.items():
        text = "".join(str(inverse(scope)) for scope in excepted)
        for edit in _replacing(pipeline, name, text):
            yield edit, "better without it at some nodes"
    for name in form.required:
        for edit in _replacing(pipeline, name, ""):
            yield edit, "better with it"


def _replacing(pipeline: Pipeline, name: str, scope: str) -> Iterator[str]:
    """Yield the edits that put each occurrence of a pass in its place again, with a scope."""
    texts = [leaf.text for leaf in pipeline.leaves() if leaf.name == name]
    for number, text in enumerate(texts, 1):
        target = name if len(texts) == 1 else f"{name}:{number}"
        yield f"replace {target}: {text}{scope}"
