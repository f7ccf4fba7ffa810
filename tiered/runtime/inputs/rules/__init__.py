"""What operators demand of their inputs: a function under `@input_rule("Operator")` for each."""

from tiered.runtime.inputs.rules import (
    index_demands as index_demands,
    size_demands as size_demands,
    value_demands as value_demands,
)
from tiered.runtime.inputs.rules.demand import DEMANDS as DEMANDS, input_rule as input_rule
