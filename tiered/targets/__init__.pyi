from tiered.targets.any_runtime import DEFAULT as DEFAULT
from tiered.targets.backend import (
    API_VERSION as API_VERSION,
    Backend as Backend,
    Verification as Verification,
)
from tiered.targets.coverage import Coverage as Coverage, Gap as Gap
from tiered.targets.custom import CustomOperator as CustomOperator
from tiered.targets.known import (
    backend_names as backend_names,
    get_backend as get_backend,
    register_backend as register_backend,
    unregister_backend as unregister_backend,
)
from tiered.targets.lost_kernels import (
    note_float_weights as note_float_weights,
    noting_lost_kernels as noting_lost_kernels,
)
from tiered.targets.operator_rule import (
    AttributeRule as AttributeRule,
    Bounds as Bounds,
    OperatorRule as OperatorRule,
)
from tiered.targets.quantized import Quantization as Quantization
from tiered.targets.shared_rules import Refusal as Refusal

__all__: list[str]
