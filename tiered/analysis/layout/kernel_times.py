"""How long kernels take for each way in which an operator may walk through memory.

The numbers are those of float32 on one core: onnxruntime 1.32.0, its optimisations off, 2026-11-23,
by `python -m benchmarks.orders`. What matters is how they compare with each other and with the time
of a Transpose, which depends little on the machine. All are nanoseconds.
"""

from typing import Final

# --- Transpose, after dims of size 1 are dropped and axes that stay adjacent are merged ----------

TRANSPOSE_START: Final = 400
"""What any Transpose or Reshape costs."""

TRANSPOSE_RUN: Final = 9.5
"""Each run of elements that stay adjacent, if the last axis stays last."""

TRANSPOSE_COPIED: Final = 0.1
"""Each element of these runs."""

TRANSPOSE_ONE_AXIS: Final = 0.2
"""Each element, if only one axis changes its place: like the transpose of matrices."""

TRANSPOSE_ANY: Final = 8.0
"""Each element of all others: they are read one by one."""

# --- operators that copy runs of elements ---------------------------------------------------------

RUNS: Final = {
    "broadcast": 10.0,  # a stretch in which the same operands broadcast
    "concat": 2.6,
    "expand": 25.0,
    "gather": 7.2,
    "pad": 12.0,
    "slice": 4.5,
    "split": 2.6,
    "tile": 9.0,
}
"""Each run, by family: elements that are copied, or computed, together."""

CUMULATIVE_RUN: Final = 2.5
CUMULATIVE_ELEMENT: Final = 8.6
"""A running sum along the last axis takes each element as a run, which it does slowly."""

# --- reductions: each element beyond the time of a reduction of the last axes ---------------------

SUM_OF_FIRST: Final = 0.15
SUM_OF_MIDDLE_RUN: Final = 200.0
SUM_OF_ENDS: Final = 0.03
"""Sums and means: kept axes last; each run in the middle of kept axes; kept axes in the middle."""

MOST_OF_FIRST: Final = 0.55
MOST_OF_MIDDLE: Final = 0.05
MOST_OF_ENDS: Final = 0.03
"""The same of all other reductions, by element."""

REDUCTION_ANY: Final = 0.5
"""Each element, if kept and reduced axes alternate further."""

NORM_NOT_LAST: Final = 1.5
"""Each element of an LpNormalization of another axis than the last one."""

# --- matrix products ------------------------------------------------------------------------------

PRODUCT_START: Final = 200.0
"""Each matrix of a batch."""

PRODUCT_STEP: Final = 0.021
"""Each multiplication; columns come in groups of `PRODUCT_COLUMNS`."""

PRODUCT_COLUMNS: Final = 16

VECTOR_STEP: Final = 0.045
"""Each multiplication of a matrix and a vector."""
