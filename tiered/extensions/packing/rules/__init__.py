"""The rules by operator, under `@packing_rule("Operator")`.

An operator without one is refused, unless all its operands are constant.
"""

from tiered.extensions.packing.interpretation import PACKINGS as PACKINGS
from tiered.extensions.packing.rules import (
    indexing as indexing,
    mixing as mixing,
    pointwise as pointwise,
    structure as structure,
)

packing_rule = PACKINGS.rule
"""Registers a function as the packing rule of operators."""
