"""Look a pass up by any of its names; what stands for several passes is a pipeline."""

from __future__ import annotations

from typing import Any

from tiered.passes import Pass
from tiered.passes.interface.registry import registry
from tiered.passes.lookup import pass_of
from tiered.pipeline.pipeline_base import NAMED, Pipeline
from tiered.pipeline.sequential import Sequential
from tiered.pipeline.text import is_pipeline
from tiered.support.errors import UsageError


def option_names(pass_: Pass) -> list[str]:
    """Return the names of the options of a pass, in order; a pipeline has none by place."""
    return [] if isinstance(pass_, Pipeline) else [option.name for option in pass_.info.options]


def get_pass(name: str, /, **options: Any) -> Pass:
    """Return a pass by its name or another system's name for it, with options.

    A name of several passes, such as TVM's `FastMath`, or of a pipeline is a `Sequential`.

    Raises:
        PassNotFoundError: no pass has this name.
        OptionError: an unknown option, or a value of the wrong type.
        UsageError: options are given to several passes at once.
    """
    if name.lower() in NAMED and name not in registry:
        return NAMED[name.lower()]().with_options(**options)
    if not is_pipeline(name) and len(registry.resolve(name)) == 1:
        found = pass_of(name)
        return found.with_options(**options) if options else found
    several = Sequential([name], name=name)
    if options:
        each = " and ".join(leaf.name for leaf in several.leaves())
        raise UsageError(
            f"{name} stands for {each} and takes no options, not {', '.join(options)}: give them "
            "to one of these passes"
        )
    return several
