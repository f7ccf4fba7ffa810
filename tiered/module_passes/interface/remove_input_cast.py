"""x: T1, Cast(x, to=T2)  =>  x: T2"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from tiered import (
    DataType,
    InterfaceMap,
    Model,
    Node,
    PassContext,
    Skip,
    TensorType,
    Value,
    module_pass,
)
from tiered.rewriter.idioms.dtype_ranges import holds
from tiered.rewriter.idioms.main_tensors import input_named

Convert = Callable[[Any], Any]


@module_pass(opt_level=None, required=("infer_shapes",), touches=("Cast",), changes_interface=True)
def remove_input_cast(
    model: Model, ctx: PassContext, *, inputs: tuple[str, ...] = ()
) -> Skip | None:
    """Give inputs the dtype that all their users cast them to, and remove these Casts.

    Callers then feed the other dtype. Numbers that the first dtype would have rounded (integers
    above 2048 in float16) now arrive as they are. A Cast of a Cast goes too if neither changes a
    number; one that rounds is what the model computes, and stays.

    Args:
        inputs: the inputs; by default all that only Casts read.

    Raises:
        UsageError: the model has no such input.
    """
    named = [input_named(model, name, "remove_input_cast") for name in inputs]
    relations = dict[str, tuple[str, Convert | None]]()
    reason = Skip("no input is read by Casts only")
    for value in named or model.main.inputs:
        # A Cast may read a Cast.
        before = list[int | None]()
        while (why := _why_not(value, casts := _users(value))) is None:
            if before and not _keep_numbers([*before, value.dtype, casts[0].attr("to")]):
                break
            before.append(value.dtype)
            known = relations.get(value.name, (value.name, None))
            relations[value.name] = _remove(model, value, casts, known)
        is_cast = any(node.is_op("Cast") for node in casts)
        if why is not None and is_cast and value.name not in relations:
            reason = why
    if not relations:
        return reason
    model.note_interface(InterfaceMap(relations))
    return None


def _users(value: Value) -> list[Node]:
    return [node for node, _ in value.users]


def _keep_numbers(dtypes: Sequence[int | None]) -> bool:
    """Return whether Casts from each of the dtypes to the next one change no number."""
    return all(
        narrow is not None and wide is not None and holds(wide, narrow)
        for narrow, wide in itertools.pairwise(dtypes)
    )


def _why_not(value: Value, casts: Sequence[Node]) -> Skip | None:
    if not casts or not all(node.is_op("Cast") for node in casts):
        return Skip("a user of the input is no Cast")
    if value.is_graph_output:
        return Skip("the input is an output")
    if value.is_overridable:
        return Skip("the input has a default")
    if len({node.attr("to") for node in casts}) > 1:
        return Skip("the input is cast to several dtypes")
    return None


def _remove(
    model: Model, value: Value, casts: Sequence[Node], known: tuple[str, Convert | None]
) -> tuple[str, Convert | None]:
    """Change the dtype of an input and remove its Casts.

    Args:
        model, value, casts: the input and all that reads it.
        known: the tensor of the original that the input is, and the conversion of its array.

    Returns:
        the same after that.
    """
    own = [node.output.name for node in casts if node.graph is model.main]
    dtype = DataType(casts[0].attr("to"))
    model.main.set_declared_type(value, TensorType(dtype, value.shape))
    for node in casts:
        node.owner.replace(node, [value])
    if own:
        return own[0], None
    name, before = known
    return name, lambda array: (before(array) if before else array).astype(dtype.numpy)
