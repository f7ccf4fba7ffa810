"""Nodes in the form of one opset  =>  nodes in the form of another opset that mean the same"""

from contextlib import nullcontext
from typing import Literal

from tiered import Model, ModelError, Numerics, PassContext, Skip, Unable, module_pass
from tiered.rewriter.idioms.functions.specialization import Specializer
from tiered.targets.lost_kernels import noting_lost_kernels


@module_pass(
    opt_level=None,
    required=("infer_shapes",),
    touches=("*",),
    changes_interface=True,
    numerics_option="numerics",
)
def convert_opset(
    model: Model,
    ctx: PassContext,
    *,
    to: int = 0,
    most: int = 0,
    ir: int = 0,
    numerics: Literal["exact", "reassociating"] = "exact",
) -> Skip | None:
    """Convert the model, its bodies and its local functions to an opset of ONNX's own domain.

    Each node is written in the form of that opset. All nodes that have none are listed in one
    error, and nothing is changed. Where a form depends on an attribute that the calls of a local
    function give, calls with other attributes get a function of their own.

    Args:
        to: the opset.
        most: for a model of a newer opset, the opset to convert it to, as far as all of its nodes
            have a form there; a model of an older one stays. Profiles of targets use it.
        ir: the IR version; 0 raises it only if the opset needs a newer one.
        numerics: `reassociating` also expands operators that the opset lacks into the function
            bodies that ONNX defines them by.

    Raises:
        OpsetError: nodes have no form at the opset.
        UsageError: onnx does not know the opset, or the model cannot have the IR version.
    """
    if most and not to:
        return _convert_down(model, most, ir, Numerics(numerics))
    if not to and not ir:
        return Unable("no opset is given")
    before = model.mark()
    with nullcontext() if ctx.names_backend else noting_lost_kernels(model):
        _convert(model, to or model.opset(), ir, Numerics(numerics))
    return None if model.changed_since(before) else Skip("the model has this opset")


def _convert_down(model: Model, most: int, ir: int, numerics: Numerics) -> Skip | None:
    if model.opset() <= most:
        return Skip("the opset is {}, not above {}", model.opset(), most)
    mark = model.mark()
    try:
        _convert(model, most, ir, numerics)
    except ModelError as error:
        model.undo_to(mark)
        return Skip("{}", error)
    return None


def _convert(model: Model, to: int, ir: int, numerics: Numerics) -> None:
    """Convert the model; if a function parameter is in the way, with its values in the functions.

    Raises:
        OpsetError: nodes have no form at the opset; nothing is changed.
        UsageError: as the pass.
    """
    try:
        model.convert_opset(to, ir=ir, numerics=numerics)
    except ModelError:
        before = model.mark()
        Specializer(model, lambda *_: None, parameters_only=True).run()
        if not model.changed_since(before):
            raise
        try:
            model.convert_opset(to, ir=ir, numerics=numerics)
        except ModelError:
            model.undo_to(before)
            raise
