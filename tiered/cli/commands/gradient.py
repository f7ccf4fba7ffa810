"""`tiered gradient MODEL OUT`: a model with the gradients of its outputs as further outputs.

It is the pass `gradient`, run as `tiered optimize --passes` does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from cyclopts import Parameter

from tiered.cli.command_flags import WriteOptions
from tiered.cli.commands.optimize import write_result
from tiered.cli.flags import Flag, Names


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class GradientOptions:
    """The options of `tiered gradient`."""

    of: Names = ()
    """The values to differentiate: loss, or a,b. By default the only output. Repeatable."""
    wrt: Annotated[Names, Parameter(name=["--wrt", "--with-respect-to"])] = ()
    """Inputs and weights, with wildcards: 'w1,layer.*'. By default all float inputs. Repeatable."""
    seed: Literal["none", "ones", "input"] = "none"
    """What the elements of a value are multiplied by: none if it is a single number, ones, or an
    input seed/NAME."""
    stop_at: Names = ()
    """Nodes and values that count as constants. Repeatable."""
    higher_order: bool = False
    """Check that the gradients can be differentiated again."""
    recompute: Annotated[bool, Flag] = False
    """Compute tensors of the forward pass again in the backward pass: a lower peak of memory."""
    stay: Names = ()
    """Tensors and nodes, with wildcards, that --recompute does not compute again: 'layer*.out'.
    Without any, it cuts where the peak is lowest. Repeatable."""


def run_gradient(
    source: str, out: str | None, options: GradientOptions, write: WriteOptions
) -> None:
    """Append gradients to the model of a file according to the options.

    Raises:
        UsageError: there is no such value.
        NoGradient: a node between has no gradient.
    """
    from tiered.pipeline import get_pass

    passes = get_pass(
        "gradient",
        of=_names(options.of),
        with_respect_to=_names(options.wrt),
        seed=options.seed,
        stop_at=_names(options.stop_at),
        mode="higher_order" if options.higher_order else "first_order",
        recompute=_names(options.stay) or options.recompute,
    ).text
    of = f" of {', '.join(_names(options.of))}" if options.of else ""
    write_result(source, out, write.with_passes(passes), f"gradients{of}")


def _names(given: tuple[str, ...]) -> list[str]:
    return [name for entry in given for name in entry.split(",") if name]
