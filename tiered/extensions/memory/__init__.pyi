from tiered.extensions.memory.chart import memory_line as memory_line, memory_svg as memory_svg
from tiered.extensions.memory.checkpoints import recompute_forward as recompute_forward
from tiered.extensions.memory.formula import peak_formula as peak_formula
from tiered.extensions.memory.liveness import (
    Lifetime as Lifetime,
    LivenessStep as LivenessStep,
    MemoryPlan as MemoryPlan,
    memory_plan as memory_plan,
    peak_change as peak_change,
)
from tiered.extensions.memory.node_orders import schedule_model as schedule_model
from tiered.extensions.memory.recomputation import (
    Recomputed as Recomputed,
    recompute_values as recompute_values,
)
from tiered.extensions.memory.splitting.peak_budget import (
    Splitting as Splitting,
    split_model as split_model,
)
