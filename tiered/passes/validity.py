"""Check the result of a pipeline: did the model, or did the passes make onnx reject it?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import onnx

from tiered.context import PassContext
from tiered.graph.queries.contrib_checker import contrib_complaint
from tiered.graph.queries.onnx_checker import (
    current_complaint,
    early_nodes,
    is_only_declared,
    without_false_errors,
    wrong_declarations,
)
from tiered.support.errors import ModelError, RuntimeFailure, ShapeError, TieredError

if TYPE_CHECKING:
    from tiered.graph import Model


_SIZES: Final = "const_input_shape"
"""The pass that sets sizes of inputs, as `--dim` and `--input-shape` ask for."""


def check_result(model: Model, ctx: PassContext) -> None:
    """Hold a model against the full check of onnx.checker, dtypes and dims included.

    The dims of operands of onnxruntime's own operators are checked by `contrib_complaint`. A fault
    of the model as loaded is a note of the model, under `strict` an error.

    Raises:
        ModelError: the passes made an invalid model, or the context is strict.
        ShapeError: the sizes that a pass set contradict each other.
    """
    _check_standard(model, ctx)
    _check_names(model, ctx)
    for text in _unchecked(model):
        if ctx.strict:
            raise ModelError(text)
        model.note(text)
    complaint = contrib_complaint(model)
    if complaint is None:
        return
    if is_contrib_complaint_new(model):
        raise ModelError(f"operands do not fit in the result: {complaint}")
    text = f"operands do not fit in the model as it was loaded: {complaint}"
    if ctx.strict:
        raise ModelError(text)
    model.note(text)


def _check_names(model: Model, ctx: PassContext) -> None:
    """Raise if two nodes of one graph have one name, which onnxruntime refuses.

    Raises:
        ModelError: they have it in the result only, or the context is strict.
    """
    name = _repeated_name(model)
    if name is None:
        return
    loaded = None if model.origin is None else type(model).from_proto(model.origin)
    text = (
        f"two nodes of one graph are named {name!r}, and onnxruntime refuses the file; "
        "unique_name_for_nodes gives them names of their own"
    )
    if ctx.strict or loaded is None or _repeated_name(loaded) is None:
        raise ModelError(text)
    model.note(text)


def _unchecked(model: Model) -> Iterator[str]:
    """Yield what is wrong with a model where the checker has nothing to check or to say."""
    version, newest = model.opset(), onnx.defs.onnx_opset_version()
    if version > newest:
        has = f"onnx {onnx.__version__} has {newest}"
        yield f"the model is of opset {version}, and {has}: no operator is checked"
    if not model.main.outputs:
        yield "the model has no outputs: nothing that it computes is used"
    missing: dict[str, str] = {}
    for graph in model.graphs():
        for node in graph.nodes:
            if not graph.opset(node.domain):
                missing.setdefault(node.domain, node.label)
    for domain, label in missing.items():
        yield f"no opset of the domain {domain!r} is imported, which node {label!r} needs"


def _repeated_name(model: Model) -> str | None:
    """Return a name that two nodes of one graph have; None if there is none."""
    for graph in model.graphs():
        taken: set[str] = set()
        for node in graph.nodes:
            if node.name in taken:
                return node.name
            if node.name:
                taken.add(node.name)
    return None


def is_contrib_complaint_new(model: Model) -> bool:
    """Return whether operands of onnxruntime's operators fit in the model as it was loaded.

    Where they do not, the model may show it only once its constants are folded.
    """
    if model.origin is None:
        return False
    loaded = type(model).from_proto(model.origin, folder=model.folder)
    if contrib_complaint(loaded) is not None:
        return False
    return not _fold(loaded) or contrib_complaint(loaded) is None


def _check_standard(model: Model, ctx: PassContext) -> None:
    complaint = complaint_of(model, ctx)
    wrong = wrong_declarations(model)
    if complaint is None and not wrong:
        return
    before = model.complaint_as_loaded() if complaint is not None else None
    if complaint is None:
        text = "the model declares types that contradict what follows from its inputs"
    elif before is not None:
        text = f"onnx.checker rejects the model as it was loaded: {before}"
    elif is_only_declared(model):
        text = f"the model declares types that contradict what follows from its inputs: {complaint}"
    elif (exposed := _complaint_about_folded(model)) is not None:
        text = f"the model contradicts itself once its constants are folded: {exposed}"
    elif (stated := _wrong_before(model)) and is_only_declared(model, stated):
        wrong = stated
        text = f"the model declares types that contradict what follows from its inputs: {complaint}"
    elif _runs_although_rejected(model):
        text = f"onnx.checker rejects what its nodes do not show, and onnxruntime runs: {complaint}"
    elif wrong and any(result.changed for result in ctx.report.of(_SIZES)):
        first = next(iter(wrong.values()))
        raise ShapeError(f"the sizes that were set do not fit together: {first} ({complaint})")
    else:
        raise ModelError(f"onnx.checker rejects the result: {complaint}")
    if wrong:
        more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        text = f"{text}: {next(iter(wrong.values()))}{more}"
    if ctx.strict:
        raise ModelError(text)
    model.note(text)


def _runs_although_rejected(model: Model) -> bool:
    """Return whether an error of onnx's inference is one of no node, and of no runtime."""
    from tiered.runtime.worker.client import shared_worker

    proto = without_false_errors(model)
    if proto is None:
        return False
    try:
        shared_worker().open(proto).close()
    except RuntimeFailure:
        return False
    return True


def complaint_of(model: Model, ctx: PassContext) -> str | None:
    """Return what onnx.checker has against a model, but for operators that the target has.

    ONNX may have an operator only from a later opset on, and the target already here.
    """
    complaint = current_complaint(model)
    if complaint is None or not ctx.names_backend:
        return complaint
    early = early_nodes(model)
    if not early or not all(map(ctx.backend.takes, early)):
        return complaint
    found = current_complaint(model, early=True)
    if found is None:
        names, opset = ", ".join(sorted({node.op_type for node in early})), model.opset()
        model.note(
            f"{names} is not in ONNX at opset {opset}, but {ctx.backend} has it there; "
            "onnx.checker refuses the file, and `tiered convert --opset 17` makes it standard"
        )
    return found


def _complaint_about_folded(model: Model) -> str | None:
    """Return what onnx has against the loaded model, once its constants are folded."""
    if model.origin is None:
        return None
    loaded = type(model).from_proto(model.origin, folder=model.folder)
    # Where it cannot be folded, folding exposes nothing.
    return current_complaint(loaded) if _fold(loaded) else None


def _fold(model: Model) -> bool:
    """Fold the constants of a model, conditions too; return whether that was possible."""
    from tiered.passes.lookup import pass_named

    try:
        with PassContext.isolated():
            for name in ("infer_shapes", "fold_constant", "eliminate_nop_if", "infer_shapes"):
                pass_named(name).apply(model)
    except TieredError:
        return False
    return True


def _wrong_before(model: Model) -> dict[str, str]:
    """Return what `wrong_declarations` says of a model as it was loaded."""
    if model.origin is None:
        return {}
    loaded = type(model).from_proto(model.origin, folder=model.folder)
    try:
        return wrong_declarations(loaded)
    finally:
        loaded.close()
