"""Why Shape and Size operators remain: the dynamic dims of the inputs that they need."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING, Final

from tiered.graph.shape_inference.set_input_shapes import declared_dims, named_dims

if TYPE_CHECKING:
    from tiered.graph import Model
    from tiered.graph.core.model import ModelState

_ASKING: Final = frozenset({"Shape", "Size"})

LONGEST: Final = 120
"""Characters of a line of the summary."""


@dataclass(frozen=True, slots=True)
class Leftover:
    """Shape operators that remain because of a dynamic dim.

    Attributes:
        dim: its name; "" if it has none.
        places: where inputs have it: (input, axis).
        count: Shape and Size operators whose operand has the dim.
        option: the option that sets it, to 1.
    """

    dim: str
    places: tuple[tuple[str, int], ...]
    count: int
    option: str

    def __str__(self) -> str:
        many = "1 shape operator is" if self.count == 1 else f"{self.count} shape operators are"
        name = repr(self.dim) if self.dim else "a dim without a name"
        before = f"{many} left because {name}"
        after = f" is dynamic; `{self.option}` (any size) fixes it"
        return f"{before}{_listed(self.places, LONGEST - len(before + after))}{after}"


def leftovers(model: Model) -> list[Leftover]:
    """Return the operators that remain because of dynamic dims, the most frequent first."""
    places: dict[str, list[tuple[str, int]]] = {}
    for value in model.main.inputs:
        for axis, dim in enumerate(value.shape or ()):
            if isinstance(dim, str):
                places.setdefault(dim, []).append((value.name, axis))
    counts: Counter[str] = Counter()
    for graph in model.graphs():
        for op_type in _ASKING if graph.root is model.main else ():
            for node in graph.nodes_of(op_type):
                counts.update(places.keys() & {*(node.given(0).shape or ())})
    return [
        _leftover(model, dim, tuple(places[dim]), count)
        for dim, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]


def _leftover(model: Model, dim: str, places: tuple[tuple[str, int], ...], count: int) -> Leftover:
    if dim in named_dims(model):
        return Leftover(dim, places, count, f"--dim {quote(f'{dim}=1')}")
    (name, axis), *_ = places
    shape = ["-1"] * len(declared_dims(model)[name])
    shape[axis] = "1"
    return Leftover("", places, count, f"--input-shape {quote(f'{name}:' + ','.join(shape))}")


def _listed(places: Sequence[tuple[str, int]], room: int) -> str:
    """Return the places of a dim in brackets, with only the first ones if the room is small."""
    texts = [f"{name}[{axis}]" for name, axis in places]
    for shown in range(len(texts), 0, -1):
        more = f" and {len(texts) - shown} more" if shown < len(texts) else ""
        listed = f" ({', '.join(texts[:shown])}{more})"
        if len(listed) <= room:
            return listed
    return ""


def fixing_hint(options: str, *, whole: bool = False) -> str:
    """Return the line about the options that fix all dynamic dims.

    Args:
        options: all of them.
        whole: print them even if the line is long; else where to find them.
    """
    hint = f"all dynamic dims at once: `{options}`"
    if whole or len(hint) <= LONGEST:
        return hint
    count = len(shlex.split(options)) // 2
    return f"{count} options fix all dynamic dims at once; `tiered inspect -v` prints them"


def fixing_options(model: ModelState) -> str:
    """Return the options that fix all dynamic dims of the inputs at once; "" if there are none.

    Each size is 1, or follows from the others (the length of a mask over past and new tokens), for
    the user to change.
    """
    named, shapes = fixing_sizes(model)
    options = [f"--dim {quote(f'{name}={size}')}" for name, size in named.items()]
    for name, dims in shapes.items():
        options.append(f"--input-shape {quote(f'{name}:' + ','.join(map(str, dims)))}")
    return " ".join(options)


def fixing_sizes(model: ModelState) -> tuple[dict[str, int], dict[str, list[int]]]:
    """Return the sizes of `fixing_options` by name of the dim, and the shapes of inputs by name.

    The shapes are of inputs that have dims without names; -1 keeps a dim.
    """
    sizes = _smallest_sizes(model)
    shapes = {
        name: [
            sizes[f"{name}[{axis}]"] if dim is None else -1 if isinstance(dim, str) else dim
            for axis, dim in enumerate(shape)
        ]
        for name, shape in declared_dims(model).items()
        if None in shape
    }
    return {name: sizes[name] for name in named_dims(model)}, shapes


def _smallest_sizes(model: ModelState) -> dict[str, int]:
    """Return a size for each dynamic dim of the inputs, by its name or place ("x[0]")."""
    from tiered.runtime.inputs.dims import smallest_sizes, tensor_slots, weight_dims

    slots = [
        slot
        for info in model.main.input_infos
        for slot in tensor_slots(info.name, info.type.tensor_type, rank=0)
    ]
    return smallest_sizes(slots, weight_dims(model.main))
