"""Constants that may become one: small ones, of which one has the shape of both together."""

import numpy as np
import pytest

from tests.small import model
from tiered.rewriter.idioms.constant_pairs import why_not_combined


@pytest.mark.parametrize(
    ("first", "second", "because"),
    [
        ((2, 3), (3,), None),
        ((), (1024,), None),
        ((), (1025,), "a constant is large"),
        ((1025,), (1,), "a constant is large"),
        ((2,), (3,), "the constants do not broadcast"),
        ((2, 1), (1, 3), "together the constants are larger"),
    ],
)
def test_why_constants_stay_two(
    first: tuple[int, ...], second: tuple[int, ...], because: str | None
) -> None:
    graph = model().main
    pair = [graph.constant(np.zeros(shape, np.float32)) for shape in (first, second)]
    found = why_not_combined(*pair)  # type: ignore[arg-type]  # constants, as a pass has them
    assert (None if found is None else found.reason) == because
