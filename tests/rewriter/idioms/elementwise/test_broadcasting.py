"""Which shapes surely have a size at an axis."""

from tiered.graph.core.types import Dim, Shape
from tiered.rewriter.idioms.elementwise.broadcasting import has_size


def test_a_size_is_that_of_one_known_shape_counted_from_its_end() -> None:
    rows: list[tuple[list[Shape | None], Dim, int, bool]] = [
        ([(2, 3)], 3, 1, True),
        ([(2, 3)], 2, 2, True),
        ([(2, 3)], 2, 1, False),
        ([(3,)], 3, 2, False),
        ([None, (), (3,)], 3, 1, True),
        ([("N", 3)], "N", 2, True),
        ([("N", None)], None, 1, False),
        ([], 3, 1, False),
    ]
    for shapes, size, from_end, expected in rows:
        assert has_size(shapes, size, from_end) is expected, (shapes, size, from_end)
