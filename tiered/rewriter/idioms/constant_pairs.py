"""Two constants that become one: when the one may take their place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tiered.rewriter.skip import Skip

if TYPE_CHECKING:
    from tiered.graph.core.value import Constant

MOST_COMBINED: Final = 1024
"""Elements; others may read a larger constant, and would keep it alive."""


def why_not_combined(*constants: Constant) -> Skip | None:
    """Return why constants do not become one by an elementwise operator; None if they may."""
    shapes = [each.const.shape for each in constants]
    if max(each.const.size for each in constants) > MOST_COMBINED:
        return Skip("a constant is large")
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        return Skip("the constants do not broadcast")
    return None if shape in shapes else Skip("together the constants are larger")
