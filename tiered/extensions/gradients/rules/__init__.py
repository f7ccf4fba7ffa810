"""Gradient rules, a file for each family of operators; the docstring of a rule is its law.

In the laws, g is the gradient of the output y, and dx that of the operand x. A rule is a function
under `@gradient_rule("Operator")`, or `@expansion("Operator")` where an operator is differentiated
as others that compute the same.
"""

from tiered.extensions.gradients.rule import (
    GRADIENTS as GRADIENTS,
    expansion as expansion,
    gradient_rule as gradient_rule,
)
from tiered.extensions.gradients.rules import (
    activation as activation,
    arithmetic as arithmetic,
    control_flow as control_flow,
    conv as conv,
    cumulative as cumulative,
    elementwise as elementwise,
    gather as gather,
    movement as movement,
    normalization as normalization,
    pooling as pooling,
    products as products,
    quantization as quantization,
    recurrent as recurrent,
    reduction as reduction,
    resize as resize,
    sampling as sampling,
    scatter as scatter,
    signal as signal,
)
