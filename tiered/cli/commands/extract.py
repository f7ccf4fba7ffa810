"""Write the part of a model between tensors, with the weights that it needs.

Examples:
    tiered extract in.onnx part.onnx --from /layer1/Relu_output_0 --to logits
    tiered extract in.onnx head.onnx --to hidden --verify

It is the pass `extract`, run as `tiered optimize --passes` does.
"""

from __future__ import annotations

from typing import Annotated

from tiered.cli.bounded import MemoryBound
from tiered.cli.line.declaration import Flags
from tiered.cli.line.pass_options import OfPass, PassOptions
from tiered.cli.optimizing import write_result
from tiered.cli.shared_options import ModelFile, OutFile, ResultOptions
from tiered.support.errors import UsageError

FROM = ("--from", "--inputs-from", "--input-names", "--in-names")
TO = ("--to", "--output-names", "--out-names", "--outputs")
Extract = Annotated[
    PassOptions,
    OfPass("extract", inputs=Flags(*FROM, splits=True), outputs=Flags(*TO, splits=True)),
]


def extract(
    source: ModelFile,
    out: OutFile = None,
    /,
    *,
    options: Extract,
    bound: MemoryBound,
    write: ResultOptions,
) -> None:
    """Extract a part of the model of a file: the pass `extract`.

    Raises:
        UsageError: no tensor is named, or there is no such tensor.
        VerificationError: the part computes something else; nothing is written.
    """
    sides = {"from": options["inputs"], "to": options["outputs"]}
    if not any(sides.values()):
        raise UsageError("nothing to extract: type --from TENSOR, --to TENSOR, or both")
    what = " ".join(f"{word} {', '.join(names)}" for word, names in sides.items() if names)
    write_result(source, out, write.for_optimize(), [options.pass_()], what)
