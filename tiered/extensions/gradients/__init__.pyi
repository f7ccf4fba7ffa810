from tiered.extensions.gradients.differentiate import (
    add_gradients as add_gradients,
    are_outputs_already as are_outputs_already,
    float_values as float_values,
)
from tiered.extensions.gradients.expression import Expr as Expr
from tiered.extensions.gradients.rule_registry import (
    NoGradient as NoGradient,
    Step as Step,
)
from tiered.extensions.gradients.rules import (
    expansion as expansion,
    gradient_rule as gradient_rule,
)

__all__: list[str]
