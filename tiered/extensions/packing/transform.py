"""An encoder of one sequence a row  =>  an encoder of several sequences a row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tiered.extensions.packing.interpretation import Interpretation
from tiered.extensions.packing.packed_inputs import SEQUENCES
from tiered.extensions.packing.packed_values import (
    AbstractTensor,
    AxisRole,
    MaskEdit,
    PackingRefusal,
    PoolEdit,
    Refused,
)
from tiered.extensions.packing.packing_edits import PackingRewrite
from tiered.extensions.packing.rules import rule_of
from tiered.graph import Graph, InterfaceMap, Model, TensorType, Value
from tiered.graph.core.interface_map import PackMap
from tiered.graph.core.types import Dim
from tiered.rewriter.idioms.main_tensors import input_named
from tiered.support.amounts import counted
from tiered.support.errors import ModelError, UsageError

_PASS = "packed_transformer"


def pack_rows(model: Model, inputs: Sequence[str] = (), *, max_valid_num: int = 0) -> str:
    """Let a transformer encoder take several sequences in each row; return what was done.

    Every operator that mixes tokens has to be one that is known: an attention, which gets a mask,
    or what takes the first token, the sum or the mean of each sequence.

    Args:
        model: the model, edited in place.
        inputs: the inputs with a row for each sequence, [batch, length, ...]; by default those
            whose first two dims are dynamic.
        max_valid_num: how many sequences the model takes, 0 for any number.

    Raises:
        UsageError: there is no such input, its first two dims are not dynamic, or `max_valid_num`
            is negative.
        ModelError: an operator may mix tokens of different sequences; the message names it.
    """
    if max_valid_num < 0:
        raise UsageError(f"{_PASS}: max_valid_num is a number from 0 on, not {max_valid_num}")
    graph = model.main
    packed = _packed_inputs(model, inputs)
    dims = [_leading(value) for value in packed]
    tokens = {length for _, length in dims}
    if len(tokens) > 1:
        raise UsageError(
            f"{_PASS}: the inputs have the lengths {', '.join(sorted(tokens))}; expected one: name "
            "the inputs of tokens by `inputs` (decoders with a cache cannot be packed)"
        )
    (token,) = tokens
    batches = frozenset(batch for batch, _ in dims)
    with _without_empty_dims(model, batches | tokens):
        return _pack(Interpretation(graph, token, batches), packed, max_valid_num)


@contextmanager
def _without_empty_dims(model: Model, names: frozenset[str]) -> Iterator[None]:
    """Infer types for dims of at least 1, which decides the shapes of some results of Reshape."""
    model.forget_types()
    model.dims.positive = names
    try:
        yield
    finally:
        model.forget_types()


def _pack(state: Interpretation, packed: Sequence[Value], max_valid_num: int) -> str:
    """Interpret and rewrite the graph; return what was done."""
    graph, model = state.graph, state.graph.model
    for value in packed:
        assert value.shape is not None
        rest = value.shape[2:]
        if any(state.mentions(dim) for dim in rest):
            raise UsageError(f"{_PASS}: {value.name!r} has an axis of tokens beside the second")
        roles = (AxisRole.BATCH, AxisRole.TOKEN, *(None,) * len(rest))
        state.facts[value] = AbstractTensor(roles)
    _check_others(graph, packed, state)
    state.run(rule_of)
    pooled = [value for value in graph.outputs if _is_pooled_output(state, value)]
    if not state.edits:
        raise ModelError(
            f"{_PASS}: {model.label} mixes no tokens: its rows may hold several sequences already"
        )
    with model.transaction():
        _rewrite(state, packed, pooled, max_valid_num)
    masks = sum(isinstance(edit, MaskEdit) for edit in state.edits)
    pools = sum(isinstance(edit, PoolEdit) for edit in state.edits)
    masked, taken = counted(masks, "attention"), counted(pools, "value")
    return f"{masked} masked by sequence, {taken} taken from whole sequences"


def _packed_inputs(model: Model, names: Sequence[str]) -> list[Value]:
    """Return the inputs with a row for each sequence."""
    if names:
        return [input_named(model, name, _PASS) for name in names]
    found = [
        value for value in model.main.inputs if not value.is_overridable and _is_dynamic(value)
    ]
    if not found:
        raise UsageError(
            f"{_PASS}: no input has dynamic dims for batch and length; declare them "
            "(`change_batch`, `model.set_input_shapes`)"
        )
    return found


def _is_dynamic(value: Value) -> bool:
    batch, length = value.dim(0), value.dim(1)
    return isinstance(batch, str) and isinstance(length, str) and batch != length


def _leading(value: Value) -> tuple[str, str]:
    """Return the dims of batch and length of an input."""
    batch, length = value.dim(0), value.dim(1)
    if not isinstance(batch, str) or not isinstance(length, str) or batch == length:
        raise UsageError(
            f"{_PASS}: {value.name!r} is {value.type}; expected dynamic dims for batch and length "
            "as its first two"
        )
    return batch, length


def _check_others(graph: Graph, packed: Sequence[Value], state: Interpretation) -> None:
    """Check that the other inputs are the same for all sequences."""
    for value in graph.inputs:
        dims: tuple[Dim, ...] | None = value.shape
        if value in packed:
            continue
        if dims is None or any(dim is None or state.mentions(dim) for dim in dims):
            raise UsageError(
                f"{_PASS}: {value.name!r} is {value.type}, and its first two dims are not batch "
                "and length; name the packed inputs by `inputs`"
            )


def _is_pooled_output(state: Interpretation, value: Value) -> bool:
    """Return whether an output gets one row for each sequence.

    Raises:
        ModelError: it cannot be computed from packed rows.
    """
    try:
        fact = state.fact(value)
    except PackingRefusal as refusal:
        raise ModelError(f"{_PASS}: {refusal}") from refusal
    if isinstance(fact, Refused):
        raise ModelError(
            f"{_PASS}: {fact.node.op_type} {fact.node.label!r}: {fact.reason}; output "
            f"{value.name!r} depends on it"
        )
    if isinstance(fact, AbstractTensor) and not (
        fact.is_row_number or AxisRole.HEADS in fact.roles
    ):
        if fact.is_constant or fact.is_pooled:
            return fact.is_pooled
        if fact.roles[:2] == (AxisRole.BATCH, AxisRole.TOKEN) and not any(fact.roles[2:]):
            return False
    raise ModelError(
        f"{_PASS}: output {value.name!r} is neither [batch, length, ...] nor one value of each "
        "sequence"
    )


def _rewrite(
    state: Interpretation, packed: Sequence[Value], pooled: Sequence[Value], max_valid_num: int
) -> None:
    """Apply the edits, and declare the new dims of outputs."""
    graph, model = state.graph, state.graph.model
    names = tuple(value.name for value in packed)
    by_sequence = frozenset(value.name for value in pooled)
    changed = {
        value
        for value, fact in state.facts.items()
        if isinstance(fact, AbstractTensor) and fact.is_pooled
    }
    kept = [(value, info) for value, info in graph.declarations if value not in changed]
    graph.set_declarations(kept)
    places = {graph.outputs.index(value): value.type for value in pooled if value.type is not None}
    rewrite = PackingRewrite(graph, _leading(packed[0]), state.facts, max_valid_num)
    rewrite.apply(state.edits)
    graph.prune(graph.nodes)  # what no output needs may mix tokens
    for place, before in places.items():
        assert isinstance(before, TensorType)
        assert before.shape is not None
        dims: list[Dim] = list(before.shape)
        fact = state.facts[pooled[list(places).index(place)]]
        assert isinstance(fact, AbstractTensor)
        dims[fact.roles.index(AxisRole.BATCH)] = max_valid_num or SEQUENCES
        graph.set_declared_type(graph.outputs[place], TensorType(before.dtype, tuple(dims)))
    model.note_interface(InterfaceMap(packed=PackMap(names, by_sequence, max_valid_num)))
