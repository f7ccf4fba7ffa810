"""Pattern vocabularies that families of passes share: normalization, attention, scales, Q/DQ."""
