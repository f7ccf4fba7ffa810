"""The decisions that a form may take otherwise: what the pipeline offers beside its defaults."""

from __future__ import annotations

import typing
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from tiered.context import PassContext
from tiered.extensions.tuning.blocks import blocks_of, joined
from tiered.extensions.tuning.model_forms import Choice, ModelForm
from tiered.extensions.tuning.output_tolerance import OutputTolerance
from tiered.graph import Model
from tiered.passes import Pass
from tiered.passes.policy.node_scope import name_scope
from tiered.pipeline.edits import pipeline_for
from tiered.pipeline.instruments import Trace
from tiered.pipeline.pipeline_base import PipelineStep
from tiered.pipeline.result import OptimizeResult
from tiered.support.amounts import counted
from tiered.support.errors import TieredError
from tiered.support.option_text import format_value

_FUSION: Final = 3
"""The level from which a pass is a fusion: it matters more often than what comes below."""
_MOST_BLOCKS: Final = 4
"""Kinds of blocks of a pass that get a decision of their own: those with the most places."""
_MOST_NAMES: Final = 200
"""Nodes that a scope names."""
NOT_TRIED: Final = frozenset(
    {"alter_op_layout", "annotate_target", "auto_insert_remap", "bake_parameters",
     "convert_qdq_to_qonnx", "eta_expand", "format_parameter", "fuse_ops", "import_qonnx",
     "insert_attention_mask", "lambda_lift", "lazy_gradient_init", "merge_compiler_regions",
     "merge_composite", "overlap_io", "partition_graph", "range_annotation",
     "rewrite_annotated_ops", "strip", "unbake"}
)  # fmt: skip
"""Opt-in passes that prepare a model for another tool, or for training."""
LOWERING: Final = (
    "decompose_", "explicit_", "factorize", "fuse_affine_", "legalize_", "lower_", "replace_",
    "round_thresholds", "sink_affine_", "sink_offset_", "sink_scale_", "unbroadcast",
)  # fmt: skip
"""How names of passes begin that write operators by others for some target: here that seldom
pays."""
_NOT_SET: Final = frozenset({"annotate", "unnamed", "numerics", "io_layout"})
"""Options that change no computation, or decide what is promised."""
_LAYOUTS: Final = ("NHWC", "NCHW")

Blocks = Mapping[str, Mapping[str, tuple[str, ...]]]


def choices_of(
    form: ModelForm,
    result: OptimizeResult,
    blocks: Blocks,
    probes: Sequence[Probe],
    budget: OutputTolerance,
) -> Iterator[Choice]:
    """Yield what a form may decide otherwise, what matters most often first.

    Args:
        form: its settings.
        result: of the run that made it.
        blocks: that the passes of this run rewrote.
        probes: models that opt-in passes are tried on.
        budget: passes beyond it are no choice.
    """
    if form.level is None:
        return
    context = PassContext(**_context_of(form))
    pipeline = pipeline_for(context.target, form.edits)
    steps = pipeline.plan(context)
    fusions, others = _disabled(form, steps, result, blocks)
    added, lowered = _open_passes(form, steps, budget)
    yield from fusions
    yield from _required(added, probes)
    yield from _by_block(steps, fusions, blocks)
    yield from _options(steps, {choice.text for choice in (*fusions, *others)}, probes, budget)
    yield from others
    yield from _required(lowered, probes)


def _context_of(form: ModelForm) -> dict[str, Any]:
    return {name: value for name, value in form.settings.items() if name != "edits"}


def _disabled(
    form: ModelForm, steps: Sequence[PipelineStep], result: OptimizeResult, blocks: Blocks
) -> tuple[list[Choice], list[Choice]]:
    """Return the passes that changed the model as ones to leave out: fusions, and the others."""
    changed: dict[str, int] = {}
    for each in result.context.report.ran():
        if each.changed:
            changed[each.name] = changed.get(each.name, 0) + max(1, each.rewrites)
    levels = {step.pass_.name: step.pass_.info.opt_level for step in steps if step.decision}
    names = [name for name in changed if levels.get(name) or name in form.required]
    names.sort(key=lambda name: (-(levels.get(name) or 0), -changed[name], name))
    fusions, others = list[Choice](), list[Choice]()
    for name in names:
        choice = Choice(f"without {name}", disabled=(name,), blocks=joined(blocks.get(name, ())),
                        count=changed[name])  # fmt: skip
        (fusions if (levels.get(name) or 9) >= _FUSION else others).append(choice)
    return fusions, others


def _by_block(
    steps: Sequence[PipelineStep], fusions: Sequence[Choice], blocks: Blocks
) -> Iterator[Choice]:
    """Yield a choice for each kind of block of a fusion: leave it out there only."""
    node_wise = {step.pass_.name for step in steps if step.pass_.info.is_node_wise}
    for choice in fusions:
        (name,) = choice.disabled
        groups = blocks.get(name, {})
        if name not in node_wise or len(groups) < 2:
            continue
        ordered = sorted(groups.items(), key=lambda pair: (-len(pair[1]), pair[0]))
        for block, anchors in ordered[:_MOST_BLOCKS]:
            nodes = tuple(dict.fromkeys(anchors))
            if "" in nodes or len(nodes) > _MOST_NAMES:
                continue
            more = f" and {counted(len(nodes) - 1, 'equal block')}" if len(nodes) > 1 else ""
            yield Choice(
                f"without {name} at {nodes[0]}{more}",
                disabled=(f"{name}{name_scope(nodes)}",),
                blocks=(block,),
                count=len(nodes),
            )


def _open_passes(
    form: ModelForm, steps: Sequence[PipelineStep], budget: OutputTolerance
) -> tuple[dict[str, Pass], dict[str, Pass]]:
    """Return passes that do not run by themselves, within the budget: those that lower apart."""
    tried: dict[str, Pass] = {}
    for step in steps:
        info = step.pass_.info
        is_open = not step.decision and info.name not in form.disabled
        if is_open and info.opt_level != 0 and _is_for_speed(step.pass_, budget):
            tried.setdefault(info.name, step.pass_)
    asked = PassContext(**{**_context_of(form), "required": [*form.required, *tried]})
    runs = {step.pass_.name for step in steps if asked.decide(step.pass_, step.place)}
    able = {name: pass_ for name, pass_ in tried.items() if name in runs}
    lowered = {name: pass_ for name, pass_ in able.items() if name.startswith(LOWERING)}
    return {name: able[name] for name in able if name not in lowered}, lowered


def _required(passes: Mapping[str, Pass], probes: Sequence[Probe]) -> Iterator[Choice]:
    """Yield the passes that would change a model."""
    for name, pass_ in passes.items():
        known = _probed(pass_, probes)
        if known is not None:
            yield Choice(f"with {name}", required=(name,), blocks=known)


def _probed(pass_: Pass, probes: Sequence[Probe]) -> tuple[str, ...] | None:
    """Return the blocks that a pass rewrites in the first model that it changes."""
    found = (probe.blocks(pass_) for probe in probes)
    return next((blocks for blocks in found if blocks is not None), None)


def _is_for_speed(pass_: Pass, budget: OutputTolerance) -> bool:
    info = pass_.info
    is_kept = not info.changes_interface and not info.analysis and info.name not in NOT_TRIED
    return is_kept and budget.allows(info.numerics)


class Probe:
    """Finds the blocks that passes would rewrite in a model: they run on a copy.

    Args:
        load: returns a new copy of the model.
        backend: the target, "" for the default one.
    """

    def __init__(self, load: Callable[[], Model], backend: str) -> None:
        self._load, self._backend = load, backend
        self._copy: Model | None = None

    def blocks(self, pass_: Pass) -> tuple[str, ...] | None:
        """Return the blocks that a pass rewrites; None if it changes nothing."""
        copy = self._load() if self._copy is None else self._copy
        before, trace = copy.journal.stamp(), Trace()
        context = PassContext.isolated(backend=self._backend or None, instruments=[trace])
        try:
            pass_.apply(copy, context)
        except TieredError:
            is_changed = False
        else:
            is_changed = copy.journal.moved_since(before)
        # A copy that no pass has changed, not even one that was undone, serves for the next.
        self._copy = None if copy.journal.moved_since(before) else copy
        return joined(blocks_of(trace).get(pass_.name, ())) if is_changed else None


def _options(
    steps: Sequence[PipelineStep],
    changing: Collection[str],
    probes: Sequence[Probe],
    budget: OutputTolerance,
) -> Iterator[Choice]:
    """Yield other values of the options of passes that run: those with few values.

    Of a pass that changed nothing, those with which it would.
    """
    seen: set[str] = set()
    for step in steps:
        pass_ = step.pass_
        if not step.decision or pass_.name in seen or pass_.info.opt_level in (0, None):
            continue
        seen.add(pass_.name)
        if pass_.name == "convert_layout":
            yield from _layouts(pass_, probes)
        for option in pass_.info.options:
            for value in () if option.name in _NOT_SET else _values(option.type):
                other = _with_option(pass_, option.name, value, budget)
                if other is None:
                    continue
                blocks = _probed(other, probes)
                if blocks is not None or f"without {pass_.name}" in changing:
                    setting = f"{option.name}={format_value(value)}"
                    yield Choice(f"{pass_.name} with {setting}",
                                 edits=(f"set {pass_.name}{{{setting}}}",),
                                 blocks=blocks or ())  # fmt: skip


def _layouts(pass_: Pass, probes: Sequence[Probe]) -> Iterator[Choice]:
    wanted = pass_.options["desired_layouts"]
    for layout in _LAYOUTS:
        if wanted.get("Conv") == layout:
            continue
        blocks = _probed(pass_.with_options(desired_layouts={"Conv": layout}), probes)
        if blocks is not None:
            edit = f"set convert_layout{{desired_layouts={{Conv: {layout}}}}}"
            yield Choice(f"Conv in {layout}", edits=(edit,), blocks=blocks)


def _values(kind: Any) -> tuple[Any, ...]:
    """Return the values of a type that has few."""
    if kind is bool:
        return (False, True)
    return typing.get_args(kind) if typing.get_origin(kind) is Literal else ()


def _with_option(pass_: Pass, name: str, value: Any, budget: OutputTolerance) -> Pass | None:
    """Return a pass with another value of an option; None if it is the same, or no choice."""
    if value == pass_.options[name]:
        return None
    try:
        other = pass_.with_options(**{name: value})
    except TieredError:
        return None
    return other if budget.allows(other.info.numerics) else None
