"""Print the weights that matter most for the outputs, by gradients on some inputs.

Examples:
    tiered sensitivity in.onnx --inputs samples
    tiered sensitivity in.onnx --weights 'encoder.*' --json

With `--json` one object: model; weights: the fields of `Sensitivity`, largest effect first.
"""

from __future__ import annotations

from dataclasses import asdict

from tiered.cli.files import load_model
from tiered.cli.output.tables import Number, print_table
from tiered.cli.output.terminal import Progress, print_json, results
from tiered.cli.shared_options import Json, ModelFile, Names, Sampled, Verbose

FEW = 20
"""Rows of the table without -v."""


class SensitivityOptions(Sampled):
    """The options of `tiered sensitivity`."""

    weights: Names = ()
    """Weights, with wildcards; by default all float weights of two and more axes. Repeatable."""
    stop_at: Names = ()
    """Nodes and values that count as constants. Repeatable."""
    verbose: Verbose = False
    """List all weights."""
    json: Json = False


def sensitivity(file: ModelFile, /, *, options: SensitivityOptions) -> None:
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
    rows = [
        (row.name, row.op_type, "x".join(map(str, row.shape)), Number(f"{row.gradient:.3g}"),
         Number(f"{row.effect:.3g}"), Number(f"{row.share:.1%}"))
        for row in found
    ]  # fmt: skip
    print_table(
        console,
        "Weights by effect",
        ("weight", "operator", "shape", "|g|", "|g w|", "share"),
        rows,
        limit=None if options.verbose else FEW,
    )
