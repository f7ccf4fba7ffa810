"""Sequential: passes in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self

from tiered.graph import Model
from tiered.passes import Pass
from tiered.passes.interface.pass_info import Members, Place
from tiered.passes.policy.pipeline_checks import Check, checks_of
from tiered.pipeline.pass_order import Constraint, ordered
from tiered.pipeline.pipeline_base import GROUPS, Pipeline
from tiered.pipeline.text import parse_elements, passes_of
from tiered.support.errors import PostconditionError, PreconditionError
from tiered.support.typed_options import Option

if TYPE_CHECKING:
    from tiered.passes import PassLike
    from tiered.passes.execution import Execution
    from tiered.passes.pass_run import PassRun

OptIns = Literal["run", "parked", "wanted"]


class Sequential(Pipeline):
    """Passes in order. With a name it is a group, which can be disabled as a whole.

    Opt-in passes run here, as they were asked for; the others are gated by their level.

    Args:
        passes: passes, or text: `"fold_constant{max_growth=1%}"`, `"fix(a,b)"`, `"fuse_*"`.
        name: what entries call the group: `cleanup`, `cleanup/fold_constant`.
        opt_level: the level below which the whole group does not run.
        opt_ins: "parked" makes opt-in passes wait until a context requires them; "wanted" makes
            them run also where the pipeline around them is parked.
        checks: functions of the model, or analysis passes, that must hold before the first pass
            and after the last: they fail by raising or by returning False.
        check_after_each: apply them after each pass that changed something; that pass then fails.
        suppress_check_failures: a failed check is only a remark, and a warning in the log.
        constraints: pairs of names; the first pass comes before the second. The given order stays
            otherwise.

    Raises:
        PassNotFoundError: an unknown name.
        UsageError: something is neither a pass nor text, the name or a check is none, or the
            constraints contradict each other.
    """

    OPTIONS = (
        Option("opt_level", int, 0),
        Option("opt_ins", OptIns, "run"),
        Option("checks", list[str], []),
        Option("check_after_each", bool, False),
        Option("suppress_check_failures", bool, False),
    )

    def __init__(
        self,
        passes: Iterable[PassLike] = (),
        *,
        name: str | None = None,
        opt_level: int = 0,
        opt_ins: OptIns = "run",
        checks: Iterable[Callable[[Model], object] | Pass | str] = (),
        check_after_each: bool = False,
        suppress_check_failures: bool = False,
        constraints: Iterable[Constraint] = (),
    ) -> None:
        given = {
            "opt_level": opt_level,
            "opt_ins": opt_ins,
            "checks": checks_of(checks),
            "check_after_each": check_after_each,
            "suppress_check_failures": suppress_check_failures,
        }
        self._fill(ordered(passes_of(passes), constraints), name, "sequential", self.OPTIONS, given)

    def _made_of(self, passes: Iterable[PassLike], **options: Any) -> Self:
        return type(self)(passes, name=self.group, **options)

    @property
    def parks(self) -> bool | None:
        return {"parked": True, "wanted": False}.get(self.options["opt_ins"])

    def places(self, place: Place) -> Iterator[tuple[Pass, Place]]:
        """Yield each pass with its place, and with the checks after it."""
        each = self.checks if self._options["check_after_each"] else ()
        return super().places(place._replace(checks=place.checks + each))

    def run(self, model: Model, execution: Execution, run: PassRun) -> Members:
        """Yield each pass in order."""
        checks = self.checks
        execution.check(checks, PreconditionError, f"before {self.name}")
        for pass_, place in execution.places(self, run.place):
            made = yield pass_, place
            run.changed += made
        if run.changed and not self._options["check_after_each"]:
            execution.check(checks, PostconditionError, f"after {self.name}")

    @property
    def checks(self) -> tuple[Check, ...]:
        """The checks before and after the passes."""
        suppressed = self._options["suppress_check_failures"]
        return tuple(check.of(suppressed) for check in self._options["checks"])

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Sequential) and self.checks != other.checks:
            return False
        return super().__eq__(other)

    __hash__ = Pass.__hash__

    @property
    def element(self) -> str:
        options = self._options_text()
        return f"{self.group or ('sequential' if options else '')}{options}({self.inner})"

    @cached_property
    def text(self) -> str:
        holds_one = len(self.passes) == 1 and isinstance(self.passes[0], Sequential)
        bare = not self.group and not self._options_text()
        return self.inner if bare and not holds_one else self.element


GROUPS["sequential"] = Sequential


def parse_pipeline(text: str) -> Sequential:
    """Return the pipeline of a string.

    Raises:
        PipelineSyntaxError: the string does not parse.
        PassNotFoundError: an unknown name, or a glob that fits no pass.
        OptionError: an option which a pass does not have, or a value which it does not take.
    """
    elements = parse_elements(text)
    if len(elements) == 1 and isinstance(elements[0], Sequential):
        return elements[0]
    return Sequential(elements)
