from tiered.instruments.checks import Checks as Checks
from tiered.instruments.diff import Diff as Diff
from tiered.instruments.dump import Dump as Dump
from tiered.instruments.invariants import Invariants as Invariants
from tiered.instruments.print_ir import PrintIR as PrintIR
from tiered.instruments.statistics import Statistics as Statistics
from tiered.instruments.timing import Timing as Timing
from tiered.instruments.trace import Trace as Trace
from tiered.verify.instrument import Verify as Verify

__all__: list[str]
