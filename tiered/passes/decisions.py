"""The decisions about all passes of one outermost call, each made once.

Without entries of the user they depend on few settings only. So a pipeline keeps them, and the
next call under the same settings decides nothing: the default pipeline has 250 places.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tiered.passes.interface.pass_info import Member, Place, Runnable
from tiered.passes.interface.registry import registry
from tiered.passes.planned import ContextSettings, PlannedPass
from tiered.passes.policy.decide import level_site

if TYPE_CHECKING:
    from tiered.context import PassContext

_MOST_PLANS: Final = 16
"""Plans that a pipeline keeps; programs rarely use more than one or two settings."""


class Decisions:
    """What one call, or several of the same settings, decided.

    Attributes:
        place: the place of the outermost pass.
        planned: by the identities of a pass and its place; the plan keeps both alive.
        places: by the same identities, for pipelines: the place, and the members with theirs.
    """

    def __init__(self, place: Place) -> None:
        self.place = place
        self.planned: dict[tuple[int, int], PlannedPass] = {}
        self.places: dict[tuple[int, int], tuple[Place, Sequence[Member]]] = {}


def plan_of(
    pass_: Runnable, place: Place, ctx: PassContext, settings: ContextSettings
) -> Decisions:
    """Return the plan of an earlier call that decides the same, or an empty one."""
    kept: dict[object, Decisions] | None = getattr(pass_, "plans", None)
    if kept is None or ctx.names_backend or place != Place(asked=place.asked, forced=place.forced):
        return Decisions(place)
    chain = ctx.chain
    if any(context.required or context.disabled for context in chain):
        return Decisions(place)
    key = (settings, level_site(chain), place.asked, place.forced, registry.version)
    plan = kept.get(key)
    if plan is None:
        if len(kept) >= _MOST_PLANS:
            kept.clear()
        plan = kept.setdefault(key, Decisions(place))
    return plan
