"""The names of ExecuTorch and torch.fx: class passes, subgraph rewriting, matching, FX nodes.

class ReluToSigmoid(PassBase):
    def call(self, graph_module):
        for node in graph_module.graph.nodes:
            if node.op == "call_function" and node.target == "Relu":
                with graph_module.graph.inserting_before(node):
                    new = graph_module.graph.call_function("Sigmoid", node.args)
                node.replace_all_uses_with(new)
                graph_module.graph.erase_node(node)
        graph_module.recompile()
        return PassResult(graph_module, True)
"""

import sys

from tiered.compat.executorch import matching as subgraph_rewriter
from tiered.compat.executorch.class_passes import (
    ExportPass,
    FxPassBase as PassBase,
    FxPassManager as PassManager,
    FxPassResult as PassResult,
    RemoveDetachPass,
    ScalarToTensorPass,
    args_map,
    this_before_that_pass_constraint,
)
from tiered.compat.executorch.fx_graph import FxGraph, FxGraphModule as GraphModule
from tiered.compat.executorch.fx_node import FxNode
from tiered.compat.executorch.matching import (
    FxSubgraphMatcher as SubgraphMatcher,
    InternalMatch,
    ReplacedPatterns,
    replace_pattern,
    replace_pattern_with_filters,
)
from tiered.compat.executorch.partitioning import (
    FxPartitioner as CapabilityBasedPartitioner,
    OperatorSupportBase,
    any_chain,
    chain,
    create_op_support,
    generate_partitions_from_list_of_nodes,
    generate_pattern_op_partitions,
    get_source_partitions,
)
from tiered.context import PassContext
from tiered.extensions.partition import (
    OperatorSupport,
    Partition,
    SourcePartition,
    create_pattern_support,
)
from tiered.rewriter import Match

__all__ = [
    "CapabilityBasedPartitioner",
    "ExportPass",
    "FxGraph",
    "FxNode",
    "GraphModule",
    "InternalMatch",
    "Match",
    "OperatorSupport",
    "OperatorSupportBase",
    "Partition",
    "PassBase",
    "PassContext",
    "PassManager",
    "PassResult",
    "RemoveDetachPass",
    "ReplacedPatterns",
    "ScalarToTensorPass",
    "SourcePartition",
    "SubgraphMatcher",
    "any_chain",
    "args_map",
    "chain",
    "create_op_support",
    "create_pattern_support",
    "generate_partitions_from_list_of_nodes",
    "generate_pattern_op_partitions",
    "get_source_partitions",
    "replace_pattern",
    "replace_pattern_with_filters",
    "subgraph_rewriter",
    "this_before_that_pass_constraint",
]

for _place in (
    "exir", "exir.backend", "exir.backend.canonical_partitioners",
    "exir.backend.canonical_partitioners.pattern_op_partitioner", "exir.pass_base",
    "exir.pass_manager", "exir.passes",
):  # fmt: skip
    # `from tiered.compat.executorch.exir.pass_base import ExportPass`, where ExecuTorch has it.
    sys.modules.setdefault(f"{__name__}.{_place}", sys.modules[__name__])
