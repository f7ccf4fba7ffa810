"""The names of the inputs of a packed model, which the host feeds."""

from typing import Final

POSITIONS: Final = "position_ids"
"""int64 [rows, length]: the position of each token in its sequence."""

SEGMENTS: Final = "sequence_ids"
"""int64 [rows, length]: the number of the sequence of each token, from 1 on; 0 is padding."""

STARTS: Final = "sequence_starts"
"""int64 [sequences, 2]: row and column of the first token of each sequence."""

SEQUENCES: Final = "sequences"
"""The dim of `sequence_starts` and of outputs with one row for each sequence."""
