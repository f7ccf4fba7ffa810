from tiered.verify.custom_ops import register_operator as register_operator
from tiered.verify.instrument import Verify as Verify
from tiered.verify.promises import (
    METRICS as METRICS,
    equality as equality,
    metric as metric,
    tolerance as tolerance,
)
from tiered.verify.static_properties import (
    acyclic as acyclic,
    connected as connected,
    isomorphic_to as isomorphic_to,
)

__all__: list[str]
