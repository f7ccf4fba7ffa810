"""Why operators that only ask for shapes are still there: which dim of which input is dynamic."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tiered.graph import Model, Value

_ASKING: Final = frozenset({"Shape", "Size"})


@dataclass(frozen=True, slots=True)
class Leftover:
    """Operators that a dynamic dim keeps.

    Attributes:
        dim: its name.
        places: where inputs have it: (input, axis).
        count: Shape and Size operators whose operand has the dim.
        shape: the dims of the first of these inputs with the dim fixed, which fixes it everywhere.
    """

    dim: str
    places: tuple[tuple[str, int], ...]
    count: int
    shape: tuple[int | str, ...]

    def __str__(self) -> str:
        many = "1 shape operator is" if self.count == 1 else f"{self.count} shape operators are"
        where = ", ".join(f"{name}[{axis}]" for name, axis in self.places)
        option = f"--input-shape {self.places[0][0]}:{','.join(map(str, self.shape))}"
        return (
            f"{many} left because {self.dim!r} ({where}) is dynamic; "
            f"`{option}`, with the size that you need, removes what depends on it"
        )


def leftovers(model: Model) -> list[Leftover]:
    """Return what dynamic dims of the inputs keep, the most frequent first."""
    places: dict[str, list[tuple[str, int]]] = {}
    for value in model.main.inputs:
        for axis, dim in enumerate(value.shape or ()):
            if isinstance(dim, str):
                places.setdefault(dim, []).append((value.name, axis))
    counts: Counter[str] = Counter()
    for graph in model.graphs():
        for op_type in _ASKING if graph.root is model.main else ():
            for node in graph.nodes_of(op_type):
                operand = node.input(0)
                dims = set((operand.shape if operand is not None else None) or ())
                counts.update(dim for dim in dims if isinstance(dim, str) and dim in places)
    inputs = {value.name: value for value in model.main.inputs}
    return [
        Leftover(
            dim,
            tuple(places[dim]),
            count,
            _fixed(inputs[places[dim][0][0]], dim),
        )
        for dim, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]


def _fixed(value: Value, dim: str) -> tuple[int | str, ...]:
    """Return the dims of an input with one of them 1; what has no name stays as it is."""
    return tuple(1 if size == dim else -1 if size is None else size for size in value.shape or ())
