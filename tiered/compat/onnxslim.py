"""`slim` with the arguments and the results of onnxslim's.

model = slim(onnx.load("model.onnx"))
slim("model.onnx", "model.slim.onnx")
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Final

import onnx

import tiered
from tiered.graph import Model
from tiered.graph.io.save import Storage
from tiered.graph.shape_text import parse_shapes
from tiered.support.errors import UsageError
from tiered.support.typed_options import size_in_bytes

__all__ = ["slim"]

_SKIPPED: Final = {
    "constant_folding": ("fold_constant", "trace_folding"),
    "dead_node_elimination": ("eliminate_deadend",),
    "graph_fusion": ("fuse_*",),
    "subexpression_elimination": ("eliminate_common_subexpr",),
    "weight_tying": ("eliminate_duplicate_initializer",),
}
"""The passes of each optimization of onnxslim."""


_HALVES: Final = ("fp16", "float16")
_FLOATS: Final = ("fp32", "float32")


def slim(
    model: str | onnx.ModelProto,
    output_model: str | None = None,
    *,
    model_check: bool = False,
    input_shapes: Sequence[str] | Mapping[str, Sequence[int]] | None = None,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    no_shape_infer: bool = False,
    skip_optimizations: Sequence[str] | None = None,
    dtype: str | None = None,
    skip_fusion_patterns: Sequence[str] | None = None,
    size_threshold: int | str | None = None,
    inspect: bool = False,
    dump_to_disk: bool = False,
    save_as_external_data: bool = False,
    model_check_inputs: Sequence[str] | None = None,
    verbose: bool = False,
) -> onnx.ModelProto | None:
    """Return the model as `tiered.optimize` at level 3 makes it; None if it is written to a file.

    Args:
        model: a file or a ModelProto, which stays as it is.
        output_model: the file to write.
        model_check: run both models, and fail if their outputs differ.
        input_shapes: "x:1,3,224,224" for each input, or the dims by name.
        inputs: refused; see the error.
        outputs: refused; see the error.
        no_shape_infer: write no inferred types into the result.
        skip_optimizations: constant_folding, graph_fusion, dead_node_elimination,
            subexpression_elimination, weight_tying.
        dtype: "fp16" or "float16" computes in halves, inputs and outputs too; fp32 keeps it.
        skip_fusion_patterns: passes that must not run, by any of their names.
        size_threshold: the bytes of the largest constant that is folded.
        inspect: print the contents of the model, and return None.
        dump_to_disk: refused; see the error.
        save_as_external_data: write the weights beside `output_model`.
        model_check_inputs: files of inputs for `model_check`.
        verbose: print the summary on stderr.

    Raises:
        UsageError: an unknown name, or an argument that is refused or has no effect.
        TargetError: nothing can be computed in halves.
        VerificationError: the outputs differ.
    """
    if inputs or outputs:
        raise UsageError(
            "slim cuts no models: the pass truncate_on_var{var=NAME} makes a value the output"
        )
    if dump_to_disk:
        raise UsageError("slim writes no tables: `tiered inspect MODEL --json` prints the contents")
    if dtype is not None and dtype not in (*_HALVES, *_FLOATS):
        raise UsageError(f"slim takes {', '.join((*_HALVES, *_FLOATS))} as dtype, not {dtype!r}")
    if save_as_external_data and output_model is None:
        raise UsageError("slim: save_as_external_data needs output_model")
    if model_check_inputs and not model_check:
        raise UsageError("slim: model_check_inputs needs model_check=True")
    if inspect:
        tiered.get_pass("model_overview").apply(_loaded(model))
        return None
    disabled = [name for skipped in skip_optimizations or () for name in _names_of(skipped)]
    edits = []
    if size_threshold is not None:
        limit = size_in_bytes(str(size_threshold), 0)
        edits.append(f"set fold_constant{{max_tensor_size={limit}}}")
    result = tiered.optimize_model(
        _loaded(model),
        opt_level=3,
        disabled=[*disabled, *(skip_fusion_patterns or ())],
        edits=edits,
        input_shapes=_shapes(input_shapes),
        verify="final" if model_check else "off",
        inputs=list(model_check_inputs or ()),
    )
    if verbose and sys.stderr is not None:
        sys.stderr.write(f"{result}\n")
    if dtype in _HALVES:
        halves = tiered.get_pass("float_to_half", keep_io_types=False)
        tiered.optimize_model(result.model, passes=[halves])
    annotate = not no_shape_infer
    if output_model is None:
        return result.model.to_proto(annotate=annotate)
    storage = Storage(0) if save_as_external_data else None
    result.model.save(os.fspath(output_model), annotate=annotate, storage=storage)
    return None


def _shapes(
    given: Sequence[str] | Mapping[str, Sequence[int]] | None,
) -> dict[str, list[int | str]] | None:
    """Return dims by the name of the input."""
    if isinstance(given, Mapping):
        return {name: [*dims] for name, dims in given.items()}
    return parse_shapes(given or (), "input_shapes") or None


def _loaded(model: str | onnx.ModelProto) -> Model:
    return Model.from_proto(model) if isinstance(model, onnx.ModelProto) else Model.load(model)


def _names_of(skipped: str) -> tuple[str, ...]:
    if skipped not in _SKIPPED:
        raise UsageError(f"no optimization {skipped!r}; there are {', '.join(_SKIPPED)}")
    return _SKIPPED[skipped]
