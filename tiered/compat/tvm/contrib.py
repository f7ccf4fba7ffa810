"""The names of `tvm.contrib`."""

from tiered.compat.tvm.running import graph_executor

graph_runtime = graph_executor
"""Its name in older versions."""

__all__ = ["graph_executor", "graph_runtime"]
