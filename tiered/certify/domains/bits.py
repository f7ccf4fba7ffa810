"""The domain of bits: elements are terms, and equal terms are equal bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tiered.certify.definitions.contrib_functions import CONTRIB_ON_BITS
from tiered.certify.domains.terms import Array, constants
from tiered.certify.evaluation.call import EvaluatedCall, Results
from tiered.certify.evaluation.evaluate import free_terms
from tiered.certify.rules.bit_arithmetic import ARITHMETIC
from tiered.certify.rules.bit_elementwise import PLAIN
from tiered.certify.rules.bit_extrema import EXTREMA
from tiered.certify.rules.casts import CASTS
from tiered.certify.rules.constant import CONSTANTS
from tiered.certify.rules.element_lists import LISTS
from tiered.certify.rules.flow import FLOW
from tiered.certify.rules.known_sequences import SEQUENCES
from tiered.certify.rules.logic import LOGIC
from tiered.certify.rules.moves import MOVES
from tiered.certify.rules.product_terms import PRODUCTS
from tiered.certify.rules.quantized_bits import QUANTIZED
from tiered.certify.rules.resizing import RESIZING

Rule = Callable[[EvaluatedCall], Results]
RULES: Final[dict[str, Rule]] = {
    **MOVES, **CONSTANTS, **PLAIN, **ARITHMETIC, **EXTREMA, **LOGIC, **CASTS, **LISTS, **PRODUCTS,
    **RESIZING, **QUANTIZED, **SEQUENCES, **FLOW,
    **CONTRIB_ON_BITS,
}  # fmt: skip


class Bits:
    """Terms of 128 bits."""

    name = "bits"

    def constant(self, numbers: Array) -> Array:
        return constants(numbers)

    def free(self, key: object, shape: Sequence[int]) -> Array:
        return free_terms(key, shape)
