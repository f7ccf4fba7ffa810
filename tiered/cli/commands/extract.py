"""`tiered extract MODEL OUT`: the part of a model between named tensors.

It is the pass `extract`, run as `tiered optimize --passes` does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from tiered.cli.command_flags import WriteOptions
from tiered.cli.commands.optimize import write_result
from tiered.support.errors import UsageError

Tensors = Annotated[tuple[str, ...], Parameter(negative=(), show_default=False)]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ExtractOptions:
    """The options of `tiered extract`."""

    from_: Annotated[
        Tensors, Parameter(name=["--from", "--inputs-from", "--input-names", "--in-names"])
    ] = ()
    """Tensors that become the inputs: a,b or --from a --from b. By default the model's inputs."""
    to: Annotated[
        Tensors, Parameter(name=["--to", "--output-names", "--out-names", "--outputs"])
    ] = ()
    """Tensors that become the outputs. By default the model's outputs that depend on --from."""


def run_extract(source: str, out: str | None, options: ExtractOptions, write: WriteOptions) -> None:
    """Extract a part of the model of a file according to the options.

    Raises:
        UsageError: no tensor is named, or there is no such tensor.
        VerificationError: the part computes something else; nothing is written.
    """
    from tiered.pipeline import get_pass

    first, last = _names(options.from_), _names(options.to)
    if not first and not last:
        raise UsageError("nothing to extract: type --from TENSOR, --to TENSOR, or both")
    passes = get_pass("extract", inputs=first, outputs=last).text
    write_result(source, out, write.with_passes(passes), _what(first, last))


def _names(given: tuple[str, ...]) -> list[str]:
    """Return the names of a repeatable option; a name may have a comma if it is the only one."""
    return [name for entry in given for name in entry.split(",") if name]


def _what(first: list[str], last: list[str]) -> str:
    sides = (("from", first), ("to", last))
    return " ".join(f"{word} {', '.join(names)}" for word, names in sides if names)
