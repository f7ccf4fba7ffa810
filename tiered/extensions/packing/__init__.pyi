from tiered.extensions.packing.host import (
    PackedBatch as PackedBatch,
    pack_lengths as pack_lengths,
    pack_sequences as pack_sequences,
)
from tiered.extensions.packing.transform import pack_rows as pack_rows
