"""`tiered sensitivity MODEL`: the weights that matter most for the outputs, by their gradients.

With `--json` one object: model; weights: the fields of `Sensitivity`, largest effect first.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated

from cyclopts import Parameter

from tiered.cli.files import load_model
from tiered.cli.flags import Flag, Names
from tiered.cli.output.tables import Number, print_table
from tiered.cli.output.terminal import Progress, print_json, printable, results

FEW = 20
"""Rows of the table without -v."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SensitivityOptions:
    """The options of `tiered sensitivity`."""

    inputs: Names = ()
    """Inputs: x.npy, feeds.npz or a folder; generated without any. Repeatable."""
    weights: Names = ()
    """Weights, with wildcards; by default all float weights of two and more axes. Repeatable."""
    stop_at: Names = ()
    """Nodes and values that count as constants. Repeatable."""
    seed: int = 0
    """Seed of the generated inputs."""
    verbose: Annotated[bool, Parameter(name=["--verbose", "-v"], negative=())] = False
    """List all weights."""
    json: Annotated[bool, Flag] = False
    """Print one JSON object on stdout instead of the table."""


def run_sensitivity(file: str, options: SensitivityOptions) -> None:
    """Print the weights of the model of a file by their effect on the outputs.

    Raises:
        ModelError: a file cannot be read, or a node has no gradient.
        UsageError: a name matches nothing.
        RuntimeFailure: onnxruntime does not run the model.
    """
    model = load_model(file)
    from tiered.extensions.debug.weight_effects import sensitivity
    from tiered.runtime.inputs.samples import read_samples

    with Progress() as progress:
        progress.say("differentiating and running")
        feeds = read_samples(options.inputs)
        found = sensitivity(
            model, feeds, weights=options.weights, stop_at=options.stop_at, seed=options.seed
        )
    if options.json:
        print_json({"model": file, "weights": [asdict(row) for row in found]})
        return
    console = results()
    shown = found if options.verbose else found[:FEW]
    rows = [
        (row.name, row.op_type, "x".join(map(str, row.shape)), Number(f"{row.gradient:.3g}"),
         Number(f"{row.effect:.3g}"), Number(f"{row.share:.1%}"))
        for row in shown
    ]  # fmt: skip
    print_table(
        console, "Weights by effect", ("weight", "operator", "shape", "|g|", "|g w|", "share"), rows
    )
    if len(found) > len(shown):
        console.print(printable(f"  and {len(found) - len(shown):,} more (-v lists them)"))
