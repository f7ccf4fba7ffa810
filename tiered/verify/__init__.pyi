from tiered.verify.custom_ops import register_operator as register_operator
from tiered.verify.pass_promises import (
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
from tiered.verify.verify_instrument import Verify as Verify

__all__: list[str]
