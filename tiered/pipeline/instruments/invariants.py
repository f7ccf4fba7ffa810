"""Invariants: no pass leaves the view inconsistent, or changes the model behind the journal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiered.graph.queries.fingerprint import Fingerprint, fingerprint, unaccounted
from tiered.pipeline.instruments.stacks import Stacks
from tiered.support.errors import PassError

if TYPE_CHECKING:
    from tiered.graph import Model
    from tiered.passes.interface.pass_info import PassInfo

_FEW = 3


class Invariants:
    """Fails each pass that breaks an invariant of the graph; for the development of passes.

    A pass may edit only through the primitives of `Graph` and `Model`: direct writes into a proto
    or an array are not undone when it fails, and no part of tiered notices them. This takes
    a fingerprint of the whole model around each pass, which costs far more than most passes.

    Args:
        largest: bytes of a weight up to which its numbers are compared; larger ones by identity.
    """

    def __init__(self, *, largest: int = 1 << 20) -> None:
        self._largest = largest
        self._before: Stacks[tuple[int, Fingerprint]] = Stacks()

    def run_before_pass(self, model: Model, info: PassInfo) -> None:
        held = {} if info.kind == "pipeline" else fingerprint(model, self._largest)
        self._before.push(model, (model.mark(), held))

    def run_after_pass(self, model: Model, info: PassInfo) -> None:
        mark, before = self._before.pop(model)
        if info.kind == "pipeline":
            return
        after = fingerprint(model, self._largest)
        found = list(unaccounted(before, after, model.journal.since(mark)))
        if found:
            more = f", and {len(found) - _FEW} more" if len(found) > _FEW else ""
            raise PassError(
                f"{info.name} changed {model.label} outside of the primitives of Graph: "
                f"{', '.join(found[:_FEW])}{more}\n  this cannot be undone: load the model again"
            )
        try:
            model.check_view()
        except AssertionError as error:
            raise PassError(f"{info.name} left {model.label} inconsistent: {error}") from error

    def run_after_pass_failed(self, model: Model, info: PassInfo, error: BaseException) -> None:
        self._before.pop(model)
