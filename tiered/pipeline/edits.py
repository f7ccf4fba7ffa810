"""Custom pipelines: edits of the default one, by a backend, then by the user.

Inserted passes form a group with the name of the author of the edit, so that the text of the
pipeline shows it, and so that `disabled=["npu/fold_constant"]` reaches it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from tiered.pipeline.default import default_pipeline
from tiered.pipeline.pipeline_base import Pipeline, PipelineT
from tiered.pipeline.sequential import Sequential
from tiered.pipeline.text import parse_elements, parse_options
from tiered.support.errors import TieredError

if TYPE_CHECKING:
    from tiered.targets import Backend
    from tiered.targets.any_runtime import AnyRuntime
    from tiered.targets.pipeline_edits import PipelineEdit

USER: Final = "user"
"""The author of edits that are not those of a backend."""


def pipeline_for(
    backend: Backend | AnyRuntime | str,
    edits: Iterable[PipelineEdit | str] = (),
    base: Sequential | None = None,
) -> Sequential:
    """Return the default pipeline with the edits of a backend, then those of the user.

    Args:
        backend: the target, or its name.
        edits: the user's, as text or as `PipelineEdit`: "drop fuse_gelu".
        base: another pipeline than the default one.

    Raises:
        BackendNotFoundError: no backend has this name.
        PassNotFoundError: an edit names a pass that the pipeline does not have.
        PipelineSyntaxError: an edit is none.
        OptionError: an edit sets an option which the pass does not have.
    """
    if isinstance(backend, str):
        from tiered.targets import get_backend

        backend = get_backend(backend)
    return edited(edited(default_pipeline() if base is None else base, backend.edits), edits)


def edited(pipeline: PipelineT, edits: Iterable[PipelineEdit | str]) -> PipelineT:
    """Return the pipeline after edits, in order; raises as `pipeline_for`."""
    if not edits:
        return pipeline
    from tiered.targets.pipeline_edits import edits_of

    for edit in edits_of(edits, USER):
        try:
            pipeline = _apply(pipeline, edit)
        except TieredError as error:
            error.add_note(f"in the edit '{edit}' of {edit.by}")
            raise
    return pipeline


def _apply(pipeline: PipelineT, edit: PipelineEdit) -> PipelineT:
    match edit.kind:
        case "drop":
            return pipeline.drop(edit.target)
        case "set":
            return pipeline.configure(edit.target, **parse_options(edit.passes))
        case "replace":
            return pipeline.replace(edit.target, _group(edit))
        case "before":
            return pipeline.insert_before(edit.target, _group(edit))
        case "after":
            return pipeline.insert_after(edit.target, _group(edit))


def _group(edit: PipelineEdit) -> Sequential:
    """Return the passes of an edit; opt-in passes that it inserts run."""
    return Sequential(parse_elements(edit.passes), name=edit.by, opt_ins="wanted")


def pipeline_diff(before: Pipeline, after: Pipeline) -> list[str]:
    """Return the lines in which two pipelines differ: "+ fuse_gelu" and "- fuse_gelu", indented."""
    import difflib

    was, now = list(_lines(before, "")), list(_lines(after, ""))
    made: list[str] = []
    opcodes = difflib.SequenceMatcher(None, was, now, autojunk=False).get_opcodes()
    for kind, i, j, k, m in opcodes:
        if kind != "equal":
            made += [f"- {line}" for line in was[i:j]] + [f"+ {line}" for line in now[k:m]]
    return made


def _lines(pipeline: Pipeline, indent: str) -> Iterator[str]:
    for pass_ in pipeline:
        if isinstance(pass_, Pipeline):
            head, _, _ = pass_.element.partition("(")
            yield f"{indent}{head}("
            yield from _lines(pass_, f"{indent}  ")
            yield f"{indent})"
        else:
            yield f"{indent}{pass_}"
