from tiered.verify.custom_ops import register_operator as register_operator
from tiered.verify.instrument import Verify as Verify
from tiered.verify.promises import (
    METRICS as METRICS,
)
from tiered.verify.promises import (
    equality as equality,
)
from tiered.verify.promises import (
    metric as metric,
)
from tiered.verify.promises import (
    tolerance as tolerance,
)
from tiered.verify.static_properties import (
    acyclic as acyclic,
)
from tiered.verify.static_properties import (
    connected as connected,
)
from tiered.verify.static_properties import (
    isomorphic_to as isomorphic_to,
)

__all__: list[str]
