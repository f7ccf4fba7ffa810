"""Passes of PopRT that are pipelines here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import tiered
from tiered.context import PassContext
from tiered.graph import Model
from tiered.graph.core.marks import METADATA_SINCE

APPLY_PASSES: Final = ("apply_ir_pass", "ApplyIrPass", "ApplyIRPasses")
MARKING: Final = frozenset({"auto_insert_remap", "overlap_io", "rewrite_annotated_ops"})
"""Passes that write metadata of nodes, inputs and outputs."""


def apply_ir_pass(passes: Iterable[str] | str = ()) -> tiered.Pass:
    """Return the pipeline of some passes."""
    names = passes.split(",") if isinstance(passes, str) else list(passes)
    return tiered.Sequential([each.strip() for each in names], name="apply_ir_pass")


def raising_ir(pass_: tiered.Pass) -> tiered.Pass:
    """Return a pass that first raises the IR version to one with metadata of nodes.

    PopRT's own marks are nodes, which every version has.
    """

    @tiered.module_pass(opt_level=None, name="raise_ir_version")
    def raise_version(model: Model, ctx: PassContext) -> None:
        if model.ir_version < METADATA_SINCE:
            ctx.remark(
                f"the IR version {model.ir_version} becomes {METADATA_SINCE}: {pass_.name} writes "
                "metadata of nodes"
            )
            model.set_ir_version(METADATA_SINCE)

    return tiered.Sequential([raise_version, pass_], name=pass_.name)
