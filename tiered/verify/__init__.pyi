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
from tiered.verify.structure import (
    acyclic as acyclic,
)
from tiered.verify.structure import (
    connected as connected,
)
from tiered.verify.structure import (
    isomorphic_to as isomorphic_to,
)

__all__: list[str]
