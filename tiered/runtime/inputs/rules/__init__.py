"""What operators demand of their inputs: a function under `@input_rule("Operator")` for each."""

from tiered.runtime.inputs.rules import indexing as indexing, operators as operators, sizes as sizes
from tiered.runtime.inputs.rules.demand import DEMANDS as DEMANDS, input_rule as input_rule
