from tiered.backends.any_runtime import DEFAULT as DEFAULT
from tiered.backends.backend import (
    API_VERSION as API_VERSION,
)
from tiered.backends.backend import (
    Backend as Backend,
)
from tiered.backends.backend import (
    Quantization as Quantization,
)
from tiered.backends.backend import (
    Verification as Verification,
)
from tiered.backends.coverage import Coverage as Coverage
from tiered.backends.coverage import Gap as Gap
from tiered.backends.custom import CustomOperator as CustomOperator
from tiered.backends.known import (
    backend_names as backend_names,
)
from tiered.backends.known import (
    get_backend as get_backend,
)
from tiered.backends.known import (
    register_backend as register_backend,
)
from tiered.backends.known import (
    unregister_backend as unregister_backend,
)
from tiered.backends.rules import (
    AttributeRule as AttributeRule,
)
from tiered.backends.rules import (
    Bounds as Bounds,
)
from tiered.backends.rules import (
    OperatorRule as OperatorRule,
)
from tiered.backends.standard import Refusal as Refusal

__all__: list[str]
