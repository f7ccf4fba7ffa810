"""The names of `tvm.contrib`."""

from tiered.compat.tvm.running import graph_executor

__all__ = ["graph_executor"]
