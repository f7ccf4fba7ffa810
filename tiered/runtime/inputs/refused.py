"""Sizes for dims that the runtime refuses: learned from its message, or from the constants.

The inner operators of an export often hold for one length alone, although the dim has a name. The
message of the failure then has the size that it is and the one that it should be.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import permutations
from typing import TYPE_CHECKING, Final

from tiered.runtime.inputs.graph_facts import numbers_of

if TYPE_CHECKING:
    from tiered.graph import Graph

_PLACE: Final = re.compile(r"\S+\.(?:h|cc|cpp):\d+|\[[^\]]*\] : \d+ :|'[^']*'|[A-Za-z_]\w*")
"""Where a message comes from, codes and names: their numbers are no sizes."""
_SHAPE: Final = re.compile(r"\{(-?\d+(?:,-?\d+)*)\}")
_NUMBER: Final = re.compile(r"-?\d+")
_MOST: Final = 4096
"""The largest size that is tried: two of them fit into memory."""
_FEW: Final = 6
"""The numbers of one message that are tried."""
_MOST_CONSTANTS: Final = 16


def learned_sizes(message: str, sizes: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Yield other sizes of dims, by the numbers of a runtime's message, likeliest first.

    Args:
        message: of the failure.
        sizes: the free dims, as they were.
    """
    yield from _of_products(message, sizes)
    numbers = _numbers(message)
    for name, size in sizes.items():
        if size in numbers:
            yield from ({name: other} for other in numbers if other != size)
    for wanted, found in permutations(numbers, 2):
        for name, size in sizes.items():
            if size + wanted - found > 0:
                yield {name: size + wanted - found}
            if size * wanted % found == 0:
                yield {name: size * wanted // found}


def _of_products(message: str, sizes: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Yield the sizes that make the first two shapes of a message have as many elements."""
    _, _, status = message.rpartition("Status Message:")
    products = [math.prod(map(int, text.split(","))) for text in _SHAPE.findall(status)]
    if len(products) < 2 or not products[0]:
        return
    given, wanted = products[:2]
    for name, size in sizes.items():
        if wanted > 0 and size * wanted % given == 0:
            yield {name: size * wanted // given}


def _numbers(message: str) -> list[int]:
    """Return the numbers of a message that may be sizes; ones broadcast, and so teach nothing."""
    _, _, status = message.rpartition("Status Message:")
    found = (int(text) for text in _NUMBER.findall(_PLACE.sub(" ", status)))
    return list(dict.fromkeys(n for n in found if 1 < n <= _MOST))[:_FEW]


def sizes_of_constants(graph: Graph, names: Iterable[str]) -> Iterator[dict[str, int]]:
    """Yield the sizes that the constants of a graph have, for each of some dims.

    Those are the dims of weights, and the numbers of Reshape targets and of sizes of parts.
    """
    found: dict[int, None] = {}
    for node in graph.nodes:
        for value in node.inputs:
            tensor = None if value is None else value.tensor
            if tensor is None:
                continue
            found.update(dict.fromkeys(tensor.shape))
            numbers = numbers_of(value)
            if numbers is not None and numbers.dtype.kind in "iu" and numbers.size <= _FEW:
                found.update(dict.fromkeys(map(int, numbers.ravel())))
    likely = [size for size in found if 1 < size <= _MOST][:_MOST_CONSTANTS]
    for name in names:
        yield from ({name: size} for size in likely)
