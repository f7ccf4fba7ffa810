from tiered.extensions.discovery.enumeration import enumerated as enumerated
from tiered.extensions.discovery.grammar import BASES as BASES, Base as Base
from tiered.extensions.discovery.rule_convergence import (
    ConvergenceTask as ConvergenceTask,
    Missing as Missing,
    Surveyed as Surveyed,
    survey as survey,
    surveyed as surveyed,
    tasks_of as tasks_of,
)

__all__: list[str]
