"""Choose sizes for the symbolic dims of a model's inputs, consistently and so that mistakes show.

Sizes of different names differ, and binding 1 differs from binding 0 wherever nothing fixes the
size. A name that is a sum of other names ("past_sequence_length + 1") is computed. Names that an
exporter invented ("s13", "unk__4") say nothing, so the input's own name and the axis decide.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tiered.runtime.inputs.dim_expression import Expression

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


@dataclass(frozen=True)
class Slot:
    """One dim of one input: an int, or a text, or None where the model says nothing."""

    input: str
    axis: int
    rank: int
    dim: int | str | None
    is_integer: bool

    @property
    def key(self) -> str:
        """What the size is bound to: the dim's name, else the place."""
        return self.dim if isinstance(self.dim, str) else f"{self.input}[{self.axis}]"


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

    def bind(self, slots: list[Slot]) -> None:
        """Give every symbolic slot a size."""
        symbolic = [slot for slot in slots if not isinstance(slot.dim, int)]
        plain = {s.key for s in symbolic if isinstance(s.dim, str) and s.dim.isidentifier()}
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

    def shape(self, slots: list[Slot]) -> tuple[int, ...]:
        """Return the sizes of slots that are bound."""
        return tuple(s.dim if isinstance(s.dim, int) else self.sizes[s.key] for s in slots)

    def _compute(self, slot: Slot, expression: Expression) -> None:
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
        """Take the role's next sizes, or the role's first where the name is an exporter's."""
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


def _expression(slot: Slot, plain: set[str]) -> Expression | None:
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


def _is_token_axis(slot: Slot) -> bool:
    return slot.is_integer and (slot.axis, slot.rank) == (1, 2) and "mask" not in slot.input.lower()


def _is_opaque(slot: Slot) -> bool:
    return not isinstance(slot.dim, str) or bool(_OPAQUE.search(slot.dim))


def _role(slot: Slot, slots: list[Slot]) -> str:
    named = None if _is_opaque(slot) else _role_of_name(slot.key)
    if named is not None:
        return named
    return _role_of_place(slot, slots) if _is_opaque(slot) else "other"


def _role_of_name(name: str) -> str | None:
    return next((role for role, pattern in _NAME_ROLES if pattern.search(name)), None)


def _role_of_place(slot: Slot, slots: list[Slot]) -> str:
    """Guess from the input's name, rank and axis what an unnamed dim is."""
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


def _decoder_or_encoder(slot: Slot, role: str) -> str:
    """Keep an encoder's length apart from the decoder's."""
    if "encoder" in slot.input.lower() and "decoder" not in slot.input.lower():
        return "seq:encoder"
    return role
