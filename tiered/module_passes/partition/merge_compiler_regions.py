"""Adjacent nodes that are marked with one target  =>  one region, by their marks"""

from tiered import Model, PassContext, module_pass
from tiered.extensions.partition.regions import merge_regions


@module_pass(opt_level=None, touches=("*",))
def merge_compiler_regions(model: Model, ctx: PassContext) -> None:
    """Merge the nodes that `annotate_target` marked to regions: metadata `tiered.region`.

    No path leaves a region and returns to it. The Constants that only a region reads belong to it.
    """
    merge_regions(model)
