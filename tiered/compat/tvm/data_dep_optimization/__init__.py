"""The names of `tvm.relay.data_dep_optimization`: passes that read the numbers of weights."""

from tiered.compat.tvm.data_dep_optimization import bsr_dense, simplify_fc_transpose

__all__ = ["bsr_dense", "simplify_fc_transpose"]
