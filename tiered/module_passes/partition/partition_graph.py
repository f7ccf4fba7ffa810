"""A marked region  =>  a call of a function that belongs to the target"""

from tiered import Model, PassContext, module_pass
from tiered.extensions.partition.regions import cut_out_regions


@module_pass(opt_level=None, followed_by=("topological_sort",), touches=("*",))
def partition_graph(model: Model, ctx: PassContext) -> None:
    """Outline each region that `merge_compiler_regions` marked: domain `tiered.<target>`.

    Weights and captured values are inputs of the function. No pass edits it, and every runtime runs
    it. A marked node without a region is a region itself. For separate models see
    `tiered.extensions.partition.as_models`.
    """
    cut_out_regions(model)
