from tiered.extensions.partition.boundary import Boundary as Boundary, boundary_of as boundary_of
from tiered.extensions.partition.composite import (
    merge_composites as merge_composites,
    pattern_table as pattern_table,
    register_pattern_table as register_pattern_table,
)
from tiered.extensions.partition.device_marks import (
    device_partitions as device_partitions,
    device_proto as device_proto,
    mark_devices as mark_devices,
)
from tiered.extensions.partition.hints import (
    mark_overlap as mark_overlap,
    mark_remaps as mark_remaps,
)
from tiered.extensions.partition.partition_charts import to_dot as to_dot, to_svg as to_svg
from tiered.extensions.partition.partition_plan import Part as Part, Plan as Plan
from tiered.extensions.partition.partition_report import Region as Region, report_of as report_of
from tiered.extensions.partition.partitioner import (
    CapabilityBasedPartitioner as CapabilityBasedPartitioner,
    Partition as Partition,
    fuse_partitions as fuse_partitions,
    generate_pattern_op_partitions as generate_pattern_op_partitions,
    propose_partitions as propose_partitions,
)
from tiered.extensions.partition.regions import (
    cut_out_regions as cut_out_regions,
    mark_targets as mark_targets,
    marked_partitions as marked_partitions,
    merge_regions as merge_regions,
    partition_graph as partition_graph,
)
from tiered.extensions.partition.separate import as_models as as_models
from tiered.extensions.partition.source_partitions import (
    SourcePartition as SourcePartition,
    get_source_partitions as get_source_partitions,
)
from tiered.extensions.partition.supports import (
    BackendSupport as BackendSupport,
    OperatorSupport as OperatorSupport,
    PatternSupport as PatternSupport,
    any_chain as any_chain,
    chain as chain,
    create_op_support as create_op_support,
    create_pattern_support as create_pattern_support,
)

__all__: list[str]
