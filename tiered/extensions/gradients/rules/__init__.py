"""Gradient rules, a file for each family of operators; the docstring of a rule is its law.

In the laws, g is the gradient of the output y, and dx that of the operand x. A rule is a function
under `@gradient_rule("Operator")`, or `@expansion("Operator")` where an operator is differentiated
as others that compute the same.
"""

from tiered.extensions.gradients.rule_registry import (
    GRADIENTS as GRADIENTS,
    expansion as expansion,
    gradient_rule as gradient_rule,
)
from tiered.extensions.gradients.rules import (
    activation_gradients as activation_gradients,
    arithmetic_gradients as arithmetic_gradients,
    control_flow_gradients as control_flow_gradients,
    conv_gradients as conv_gradients,
    cumulative_gradients as cumulative_gradients,
    elementwise_gradients as elementwise_gradients,
    gather_gradients as gather_gradients,
    movement_gradients as movement_gradients,
    normalization_gradients as normalization_gradients,
    pooling_gradients as pooling_gradients,
    product_gradients as product_gradients,
    quantization_gradients as quantization_gradients,
    recurrent_gradients as recurrent_gradients,
    reduction_gradients as reduction_gradients,
    resize_gradients as resize_gradients,
    sampling_gradients as sampling_gradients,
    scatter_gradients as scatter_gradients,
    signal_gradients as signal_gradients,
)
