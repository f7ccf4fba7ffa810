"""Choose sizes for the symbolic dims of a model's inputs, consistent and easy to distinguish.

Sizes of different names differ, and binding 1 differs from binding 0 wherever nothing fixes the
size. A name that is a sum of other names ("past_sequence_length + 1") is computed. Names that an
exporter invented ("s13", "unk__4") say nothing, so the input's own name and the axis decide.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Final

from tiered.graph.core.dtypes import DataType
from tiered.runtime.inputs.dim_expression import Expression

if TYPE_CHECKING:
    import onnx

    from tiered.graph import Graph, Node

# role -> the sizes of its first, second, ... name, each as (binding 0, binding 1).
_SIZES: dict[str, tuple[tuple[int, int], ...]] = {
    "batch": ((2, 3), (4, 2), (5, 6)),
    "seq": ((24, 13), (16, 11), (20, 17), (28, 19)),
    "seq:encoder": ((16, 11),),
    "past": ((8, 5), (7, 6)),
    "height": ((64, 96),),
    "width": ((96, 64),),
    "depth": ((16, 8),),
    "channel": ((3, 3),),
    "other": ((8, 5), (7, 11), (9, 6), (10, 4), (6, 9), (11, 7), (12, 10)),
}
# The order counts: "past_sequence_length" is past, "total_sequence_length" total.
_NAME_ROLES = (
    ("past", re.compile(r"past|cache|history|prefix", re.I)),
    ("total", re.compile(r"total|mask|kv_?len|kv_?seq|all_?len|full", re.I)),
    ("batch", re.compile(r"batch|^bs$|^[bn]$", re.I)),
    ("height", re.compile(r"height|^h$|_h$|rows", re.I)),
    ("width", re.compile(r"width|^w$|_w$|cols", re.I)),
    ("channel", re.compile(r"channel|^c$", re.I)),
    ("seq", re.compile(r"seq|len|time|token|frame|^[tsl]$", re.I)),
)
_OPAQUE = re.compile(
    r"^([sud]|unk__|dim_?|axis_?|\?)\d*$|^-?\d+$|none|unknown|dynamic_axes|^[a-z]?\d+$", re.I
)
_STATE_INPUT = re.compile(r"^[hc](_?[n0])?$|state|hidden|\bcell", re.I)
_PAST_INPUT = re.compile(r"past|cache|\bmems?\b", re.I)
# With more names than these, there are too many relations between them to try.
_MAX_PAIRED = 6
_MAX_SUMMED = 4
# Windows of recurrent detectors at 16 and 8 kHz, then what spectrograms and whole seconds take.
_SOUNDS = (512, 256, 576, 128, 1536, 3000, 16000)
_SOUND_RANK = 3
_MOST_ELEMENTS = 1 << 22
"""An input of sound has a long axis, no two: more elements than these are no sound."""

ALL_ONES = "all dims 1"
"""The words of the last candidate."""

INTEGERS: Final = frozenset({
    DataType.INT8, DataType.INT16, DataType.INT32, DataType.INT64, DataType.BOOL,
    DataType.UINT8, DataType.UINT16, DataType.UINT32, DataType.UINT64,
})  # fmt: skip
"""The dtypes of integers, and bool."""

Candidate = tuple[str, dict[str, int], int]


@dataclass(frozen=True)
class DimSlot:
    """One dim of one input: a size, a name or expression, or None if it is unknown."""

    input: str
    axis: int
    rank: int
    dim: int | str | None
    is_integer: bool

    @property
    def key(self) -> str:
        """What the size is bound to: the dim's name, else the place."""
        return self.dim if isinstance(self.dim, str) else f"{self.input}[{self.axis}]"


def tensor_slots(name: str, tensor: onnx.TypeProto.Tensor, rank: int) -> list[DimSlot]:
    """Return the dims of an input; if it has no shape, each dim of the rank is unknown."""
    dims: list[int | str | None] = [None] * rank
    if tensor.HasField("shape"):
        dims = [_dim(d) for d in tensor.shape.dim]
    is_integer = tensor.elem_type in INTEGERS
    return [DimSlot(name, axis, len(dims), dim, is_integer) for axis, dim in enumerate(dims)]


def _dim(dim: onnx.TensorShapeProto.Dimension) -> int | str | None:
    # Some exporters write -1 for a dim that they do not know.
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        return int(dim.dim_value)
    return str(dim.dim_param) or None


@dataclass
class Binder:
    """Binds names to sizes, one binding of one model.

    `overrides` maps names, places ("x[0]") or roles ("past") to sizes and wins over all else.
    `fixed` holds what the weights decide, by place.
    """

    binding: int
    overrides: Mapping[str, int]
    fixed: Mapping[str, int]
    sizes: dict[str, int] = field(default_factory=dict)
    roles: dict[str, str] = field(default_factory=dict)
    _names_of_role: dict[str, list[str]] = field(default_factory=dict)

    def bind(self, slots: list[DimSlot]) -> None:
        """Give every symbolic slot a size."""
        symbolic = [slot for slot in slots if not isinstance(slot.dim, int)]
        plain = {slot.key for slot in symbolic if isinstance(slot.dim, str)}
        has_past = any(_role(slot, slots) == "past" for slot in symbolic)
        for slot in symbolic:
            if (place := f"{slot.input}[{slot.axis}]") in self.fixed:
                self._set(slot.key, "weights", self.fixed[place])
        late = []
        for slot in symbolic:
            if slot.key in self.sizes:
                continue
            role = _role(slot, slots)
            expression = _expression(slot, plain)
            if expression is not None or (role == "total" and has_past):
                late.append((slot, expression))
            else:
                self._choose(slot.key, "seq" if role == "total" else role, _is_opaque(slot))
        # A decoder that takes one token at a time has the length as a number.
        token_dims = [s.dim for s in slots if _is_token_axis(s) and isinstance(s.dim, int)]
        fixed_seq = token_dims[0] if token_dims else 0
        for slot, expression in late:
            if expression is not None:
                self._compute(slot, expression)
            else:
                seq = self.first("seq")
                total = (self.first("past") or 0) + (fixed_seq if seq is None else seq)
                self._set(slot.key, "total", total)

    def shape(self, slots: list[DimSlot]) -> tuple[int, ...]:
        """Return the sizes of slots that are bound."""
        return tuple(s.dim if isinstance(s.dim, int) else self.sizes[s.key] for s in slots)

    def _compute(self, slot: DimSlot, expression: Expression) -> None:
        for name in expression.names:
            if name not in self.sizes:
                self._choose(name, _role_of_name(name) or "other", False)
        try:
            value = expression.value(self.sizes)
        except ValueError:
            value = -1
        if value >= 0:
            self._set(slot.key, "expression", value)
        else:
            self._choose(slot.key, "other", False)

    def _choose(self, key: str, role: str, shared: bool) -> None:
        """Take the role's next sizes, or its first ones if an exporter invented the name."""
        family, _, axis = role.partition(":")
        names = self._names_of_role.setdefault(role, [])
        index = (int(axis) if axis.isdigit() else 0) if shared else len(names)
        if not shared:
            names.append(key)
        table = _SIZES.get(role, _SIZES[family])
        size = table[index % len(table)][self.binding % 2]
        step = 2 * (index // len(table)) + self.binding // 2
        self._set(key, role, size if role == "channel" else size + step)

    def _set(self, key: str, role: str, size: int) -> None:
        self.roles[key] = role
        self.sizes[key] = self.overrides.get(key, self.overrides.get(role, size))

    def first(self, role: str) -> int | None:
        """Return the size of the role's first name."""
        return next((self.sizes[key] for key, known in self.roles.items() if known == role), None)


def _expression(slot: DimSlot, plain: set[str]) -> Expression | None:
    """Return the dim as an expression, unless it is a plain name or a name with odd letters."""
    if not isinstance(slot.dim, str) or slot.dim.isidentifier():
        return None
    try:
        expression = Expression(slot.dim)
    except ValueError:
        return None
    # "batch-size" and "h/w" may well be names; an expression has known terms or a plain sum.
    known = all(name in plain for name in expression.names)
    return expression if known or re.search(r"[+*(]|//", slot.dim) else None


def _is_token_axis(slot: DimSlot) -> bool:
    return slot.is_integer and (slot.axis, slot.rank) == (1, 2) and "mask" not in slot.input.lower()


def _is_opaque(slot: DimSlot) -> bool:
    return not isinstance(slot.dim, str) or bool(_OPAQUE.search(slot.dim))


def _role(slot: DimSlot, slots: list[DimSlot]) -> str:
    named = None if _is_opaque(slot) else _role_of_name(slot.key)
    if named is not None:
        return named
    return _role_of_place(slot, slots) if _is_opaque(slot) else "other"


def _role_of_name(name: str) -> str | None:
    return next((role for role, pattern in _NAME_ROLES if pattern.search(name)), None)


def _role_of_place(slot: DimSlot, slots: list[DimSlot]) -> str:
    """Guess the role of an unnamed dim from the input's name, rank and axis."""
    if _STATE_INPUT.search(slot.input) and slot.rank == 3 and not slot.is_integer:
        # The state of a recurrent layer is [layers, batch, hidden].
        return "batch" if slot.axis == 1 else f"other:{slot.axis}"
    if slot.axis == 0:
        return "batch"
    if _PAST_INPUT.search(slot.input) and slot.rank >= 3:
        return "past"
    if "mask" in slot.input.lower() and slot.axis == slot.rank - 1:
        return _decoder_or_encoder(slot, "total")
    if slot.is_integer or (slot.rank == 3 and slot.axis == 1) or "mask" in slot.input.lower():
        return _decoder_or_encoder(slot, "seq")
    if slot.rank in (4, 5):
        same = {s.axis: s.dim for s in slots if s.input == slot.input}
        channels_last = same[slot.rank - 1] in (1, 3, 4)
        spatial = ["height", "width"] if slot.rank == 4 else ["depth", "height", "width"]
        axes = ["batch", *spatial, "channel"] if channels_last else ["batch", "channel", *spatial]
        return axes[slot.axis]
    return f"other:{slot.axis}"


def _decoder_or_encoder(slot: DimSlot, role: str) -> str:
    """Keep an encoder's length apart from the decoder's."""
    if "encoder" in slot.input.lower() and "decoder" not in slot.input.lower():
        return "seq:encoder"
    return role


def candidates(slots: list[DimSlot], usual: Binder) -> Iterator[Candidate]:
    """Yield (words, sizes by name or role, rank of tensors that have none), likeliest first.

    Args:
        slots: the dims of the inputs.
        usual: has bound them as `make_inputs` does unasked.
    """
    rank = 2
    yield "sizes as usual", {}, rank
    yield "one new token after a past", {"seq": 1}, rank
    yield "no past", {"past": 0}, rank
    yield "total = seq", {"total": usual.first("seq") or 1}, rank
    names = list(dict.fromkeys(slot.key for slot in slots if not isinstance(slot.dim, int)))
    free = [name for name in names if usual.roles[name] != "weights"]
    rest = [name for name in free if usual.roles[name] != "batch"]
    yield "batch 1", {"batch": 1}, rank
    if rest:
        size = usual.sizes[rest[0]]
        yield "all dims but the batch equal", dict.fromkeys(rest, size), rank
        yield "all dims equal", dict.fromkeys(free, size), rank
    yield from _relations(free, usual, rank)
    yield from _sounds(slots, usual, rank)
    yield "square images", {"height": 64, "width": 64}, rank
    yield "images of 224", {"height": 224, "width": 224}, rank
    if any(slot.rank == 2 for slot in slots):
        for other in (1, 0, 3, 4):
            yield f"rank {other} where the model says none", {}, other
    yield "all dims 32", dict.fromkeys(free, 32), rank
    yield ALL_ONES, dict.fromkeys(free, 1), rank  # last: ones broadcast, and so prove little


def smallest_sizes(slots: list[DimSlot], fixed: Mapping[str, int]) -> dict[str, int]:
    """Return sizes by name or place: 1, or what follows from the others being 1.

    A name that is a sum follows ("past + 1"), and the length of a mask over past and new tokens.

    Args:
        slots: the dims of the inputs.
        fixed: the sizes that weights decide, by place.
    """
    usual = Binder(0, {}, fixed)
    usual.bind(slots)
    follows = ("weights", "expression", "total")
    free = [name for name, role in usual.roles.items() if role not in follows]
    smallest = Binder(0, dict.fromkeys(free, 1), fixed)
    smallest.bind(slots)
    return smallest.sizes


def _sounds(slots: list[DimSlot], usual: Binder, rank: int) -> Iterator[Candidate]:
    """Yield lengths of sound, in samples or frames, for the float inputs that have a free dim."""
    keys = [
        slot.key
        for slot in slots
        if not isinstance(slot.dim, int) and not slot.is_integer and slot.rank <= _SOUND_RANK
        if usual.roles[slot.key] not in ("batch", "past", "weights")
    ]
    for size in _SOUNDS if keys else ():
        lengths = dict.fromkeys(keys, size)
        if _most_elements(slots, {**usual.sizes, **lengths}) > _MOST_ELEMENTS:
            continue
        yield f"{size} samples or frames of sound", lengths, rank
        yield f"{size} of them, batch 1", {"batch": 1, **lengths}, rank


def _most_elements(slots: list[DimSlot], sizes: Mapping[str, int]) -> int:
    """Return the number of elements of the largest input."""
    elements = dict.fromkeys((slot.input for slot in slots), 1)
    for slot in slots:
        elements[slot.input] *= slot.dim if isinstance(slot.dim, int) else sizes[slot.key]
    return max(elements.values())


def _relations(free: list[str], usual: Binder, rank: int) -> Iterator[Candidate]:
    """Yield that one name equals another, or the sum of two others."""
    if len(free) > _MAX_PAIRED:
        return
    for one, other in combinations(free, 2):
        yield f"{other} = {one}", {other: usual.sizes[one]}, rank
    for a, b in combinations(free if len(free) <= _MAX_SUMMED else (), 2):
        for total in (name for name in free if name not in (a, b)):
            yield f"{total} = {a} + {b}", {total: usual.sizes[a] + usual.sizes[b]}, rank


def weight_dims(graph: Graph) -> dict[str, int]:
    """Return the dims of inputs that a weight decides, by place: {"x[1]": 3}.

    Only operators that read the input directly count: Conv and ConvTranspose (channels), MatMul
    and Gemm (the contracted axis), BatchNormalization (channels), and RNN, GRU and LSTM (features).
    """
    found: dict[str, int] = {}
    for node in graph.nodes:
        for slot, other in ((0, 1), (1, 0)):
            value, weight = node.input(slot), node.input(other)
            if value is None or value.input_of is not graph or value.default is not None:
                continue
            if value.rank is None or weight is None or weight.default is None:
                continue
            decided = _decided(node, slot, value.rank, weight.default.shape)
            if decided is not None:
                found.setdefault(f"{value.name}[{decided[0]}]", decided[1])
    return found


def _decided(node: Node, slot: int, rank: int, weight: tuple[int, ...]) -> tuple[int, int] | None:
    """Return (axis of the input, its size) as the weight beside it has it."""
    kind = node.op_type
    if kind == "MatMul" and weight:
        if slot == 0:
            return rank - 1, weight[-2:][0]
        return max(rank - 2, 0), weight[-1]
    if kind == "Gemm" and rank == 2 and len(weight) == 2:
        own, beside = ("transA", "transB") if slot == 0 else ("transB", "transA")
        axis = 1 - node.attr(own, 0) if slot == 0 else node.attr(own, 0)
        inner = node.attr(beside, 0) if slot == 0 else 1 - node.attr(beside, 0)
        return axis, weight[inner]
    if slot != 0:
        return None
    if kind == "Conv" and rank > 1 and len(weight) > 1:
        return 1, weight[1] * node.attr("group", 1)
    if kind in ("ConvTranspose", "BatchNormalization") and rank > 1 and weight:
        return 1, weight[0]
    if kind in ("RNN", "GRU", "LSTM") and rank == 3 and len(weight) == 3:
        return 2, weight[2]
    return None
