"""Sequential: passes in order."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self

from tiered.graph import Model
from tiered.options import Option
from tiered.passes import Pass
from tiered.pipeline.base import Pipeline

if TYPE_CHECKING:
    from tiered.passes.execution import Execution
    from tiered.passes.recording import PassRun

OptIns = Literal["run", "parked"]


class Sequential(Pipeline):
    """Passes in order. With a name it is a group, which can be disabled as a whole.

    Opt-in passes run here, as they were asked for; the others are gated by their level.

    Args:
        passes: passes, or text: `"fold_constant{max_growth=1%}"`, `"fix(a,b)"`, `"fuse_*"`.
        name: what entries call the group: `cleanup`, `cleanup/fold_constant`.
        opt_level: the level below which the whole group does not run.
        opt_ins: "parked" makes opt-in passes wait until a context requires them.

    Raises:
        PassNotFoundError: an unknown name.
        UsageError: something is neither a pass nor text, or the name is none.
    """

    OPTIONS = (Option("opt_level", int, 0), Option("opt_ins", OptIns, "run"))

    def __init__(
        self,
        passes: Iterable[Pass | str] = (),
        *,
        name: str | None = None,
        opt_level: int = 0,
        opt_ins: OptIns = "run",
    ) -> None:
        given = {"opt_level": opt_level, "opt_ins": opt_ins}
        self._fill(passes, name, "sequential", self.OPTIONS, given)

    def _made_of(self, passes: Iterable[Pass | str], **options: Any) -> Self:
        return type(self)(passes, name=self.group, **options)

    @property
    def parks(self) -> bool:
        return bool(self.options["opt_ins"] == "parked")

    def run(self, model: Model, execution: Execution, run: PassRun) -> None:
        """Run each pass in its turn."""
        for pass_, place in self.places(run.place):
            run.changed += execution.execute(pass_, place)

    @property
    def element(self) -> str:
        options = self._options_text()
        return f"{self.group or ('sequential' if options else '')}{options}({self.inner})"

    @cached_property
    def text(self) -> str:
        holds_one = len(self.passes) == 1 and isinstance(self.passes[0], Sequential)
        bare = not self.group and not self._options_text()
        return self.inner if bare and not holds_one else self.element
