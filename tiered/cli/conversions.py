"""The options that `tiered convert` and `tiered prepare` share, most of them those of passes."""

from __future__ import annotations

from typing import Annotated

from tiered.cli.line.declaration import Flags
from tiered.cli.line.pass_options import OfPass, PassOptions
from tiered.cli.shared_options import InputShapes, Names
from tiered.support.records import Record

_NARROWING = {
    "skip_op_types": Flags("--keep-ops", "--skip-op-types", splits=True),
    "skip_nodes": Flags("--keep-nodes", "--skip-nodes"),
    "keep_io_types": Flags("--keep-io", "--keep-io-types", off="--no-keep-io"),
}
_SHARED = ("budget", "order", "skip_op_types", "skip_nodes")

Versions = Annotated[
    PassOptions,
    OfPass(
        "convert_opset",
        only=("to", "ir"),
        to=Flags("--opset", "--target-opset", "--opset-version", "--convert-opset"),
        ir=Flags("--ir", "--ir-version"),
    ),
]
Narrowing = Annotated[
    PassOptions, OfPass("float_to_mixed", only=_SHARED, when="With --to", **_NARROWING)
]
NarrowingWithPorts = Annotated[
    PassOptions,
    OfPass("float_to_mixed", only=(*_SHARED, "keep_io_types"), when="With --to", **_NARROWING),
]
Bounds = Annotated[PassOptions, OfPass("int64_to_int32", only=("bounds",), when="With --to int32")]


class ConversionOptions(Record):
    """What becomes of a model, beside its precision."""

    dim: Names = ()
    """Fix a dim by its name in all inputs that have it: batch=1. Repeatable."""
    input_shape: InputShapes = ()
    strip: Names = ()
    """As for `tiered optimize`: metadata, docs, names, marks or all."""
    expand: bool = False
    """Expand operators that the opset lacks into their ONNX function bodies, which may round
    differently."""
