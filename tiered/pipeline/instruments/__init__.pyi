from tiered.pipeline.instruments.checks import Checks as Checks
from tiered.pipeline.instruments.dump import Dump as Dump
from tiered.pipeline.instruments.invariants import Invariants as Invariants
from tiered.pipeline.instruments.pass_diff import Diff as Diff
from tiered.pipeline.instruments.print_ir import PrintIR as PrintIR
from tiered.pipeline.instruments.statistics import Statistics as Statistics
from tiered.pipeline.instruments.timing import Timing as Timing
from tiered.pipeline.instruments.trace import Trace as Trace
from tiered.verify.verify_instrument import Verify as Verify

__all__: list[str]
