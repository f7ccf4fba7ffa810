from tiered.backends.any_runtime import DEFAULT as DEFAULT
from tiered.backends.backend import (
    API_VERSION as API_VERSION,
    Backend as Backend,
    Verification as Verification,
)
from tiered.backends.coverage import Coverage as Coverage, Gap as Gap
from tiered.backends.custom import CustomOperator as CustomOperator
from tiered.backends.known import (
    backend_names as backend_names,
    get_backend as get_backend,
    register_backend as register_backend,
    unregister_backend as unregister_backend,
)
from tiered.backends.lost_kernels import (
    note_float_weights as note_float_weights,
    noting_lost_kernels as noting_lost_kernels,
)
from tiered.backends.quantized import Quantization as Quantization
from tiered.backends.rules import (
    AttributeRule as AttributeRule,
    Bounds as Bounds,
    OperatorRule as OperatorRule,
)
from tiered.backends.standard import Refusal as Refusal

__all__: list[str]
