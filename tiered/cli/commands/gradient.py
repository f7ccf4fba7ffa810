"""Write a model that also returns the gradients of its outputs, in standard operators.

Examples:
    tiered gradient in.onnx out.onnx --of loss --wrt w1 --wrt 'layer.*'
    tiered gradient in.onnx out.onnx --seed input --verify

It is the pass `gradient`, run as `tiered optimize --passes` does.
"""

from __future__ import annotations

from typing import Annotated

from tiered.cli.bounded import MemoryBound
from tiered.cli.effects import Effect
from tiered.cli.line.declaration import Flags
from tiered.cli.line.pass_options import OfPass, PassOptions
from tiered.cli.optimizing import write_result
from tiered.cli.shared_options import ModelFile, OutFile, ResultOptions

Gradient = Annotated[
    PassOptions,
    OfPass(
        "gradient",
        effects=[
            Effect(
                ("options.dims", "options.default_dim"),
                "--recompute or --stay",
                lambda of: of("options.recompute") or of("options.stay"),
            )
        ],
        of=Flags(splits=True),
        with_respect_to=Flags("--wrt", "--with-respect-to", splits=True),
        stop_at=Flags(splits=True),
        stay=Flags(splits=True),
        higher_order=Flags(off="--no-higher-order"),
    ),
]


def gradient(
    source: ModelFile,
    out: OutFile = None,
    /,
    *,
    options: Gradient,
    bound: MemoryBound,
    write: ResultOptions,
) -> None:
    """Append gradients to the model of a file: the pass `gradient`.

    Raises:
        UsageError: there is no such value.
        NoGradient: a node between has no gradient.
    """
    of = f" of {', '.join(options['of'])}" if options["of"] else ""
    write_result(source, out, write.for_optimize(), [options.pass_()], f"gradients{of}")
