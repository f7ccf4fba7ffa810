"""The one decision: does this pass run here, on which nodes, and why.

The innermost context that mentions a pass decides; within one context disabled, then required. If
none mentions it, its level does. Entries with a node scope decide for their nodes only, and the
next rule for the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from tiered.passes.interface.pass_info import Decision, NodeRules, Place, Runnable
from tiered.passes.interface.registry import registry
from tiered.support.errors import UsageError

if TYPE_CHECKING:
    from tiered.passes.policy.node_scope import Scope
    from tiered.passes.policy.selectors import Entry, Site
    from tiered.targets import Backend
    from tiered.targets.any_runtime import AnyRuntime

OPT_IN: Final = "opt-in: runs only when required"
"""Why an opt-in pass that was not asked for does not run."""


PREVIEW: Final = "in preview: runs only when required"
"""Why a pass in preview that was not asked for does not run."""


class Rules(Protocol):
    """The settings of one context that decide about passes; `PassContext` implements it."""

    @property
    def required(self) -> Iterable[Entry]: ...
    @property
    def disabled(self) -> Iterable[Entry]: ...
    @property
    def opt_level(self) -> int: ...
    @property
    def sets_level(self) -> bool: ...
    @property
    def site(self) -> Site: ...
    @property
    def strict(self) -> bool: ...
    @property
    def target(self) -> Backend | AnyRuntime: ...
    def mark_used(self, entry: Entry, /) -> None: ...


class _Rule(NamedTuple):
    run: bool
    reason: str
    scope: Scope | None


def decide(chain: Sequence[Rules], pass_: Runnable, place: Place) -> Decision:
    """Decide about a pass under a chain of contexts, outermost first.

    Raises:
        UsageError: cyclic `required`; under `strict`, one needs a disabled one.
    """
    if place.forced:
        return Decision(True, "applied directly")
    rules = _mentions(chain, pass_, place)
    final = next((rule for rule in rules if rule.scope is None), None) if rules else None
    if final is None:
        final = _by_level(chain, pass_, place)
    scoped = [rule for rule in rules[: _index(rules, final)] if rule.scope is not None]
    decision = _combined(scoped, final) if scoped else Decision(final.run, final.reason)
    if decision.run and pass_.info.makes:
        decision = _with_operators(chain[-1].target, pass_, decision)
    if decision.run and pass_.info.quantization:
        decision = _with_form(chain[-1].target, pass_, decision)
    return _with_dependencies(chain, pass_, place, decision) if decision.run else decision


def _mentions(chain: Sequence[Rules], pass_: Runnable, place: Place) -> list[_Rule]:
    """Return the rules of the entries that select a pass, the deciding one first."""
    rules = []
    for context in reversed(chain):
        for entries, run in ((context.disabled, False), (context.required, True)):
            for entry in entries:
                if entry.selects(pass_, place):
                    context.mark_used(entry)
                    verb = "required by" if run else "disabled by"
                    rules.append(_Rule(run, f"{verb} {entry}", entry.scope))
    return rules


def _index(rules: Sequence[_Rule], rule: _Rule) -> int:
    return next((i for i, known in enumerate(rules) if known is rule), len(rules))


def _by_level(chain: Sequence[Rules], pass_: Runnable, place: Place) -> _Rule:
    wanted = pass_.info.opt_level
    if place.needed_by:
        return _Rule(True, f"needed by {place.needed_by}", None)
    if wanted is None and place.parks:
        return _Rule(False, OPT_IN, None)
    if wanted is None or place.asked:
        return _Rule(True, "asked for by name", None)
    if pass_.info.life == "preview":
        return _Rule(False, PREVIEW, None)
    level = chain[-1].opt_level
    if level >= wanted:
        return _Rule(True, f"opt_level {level} includes level {wanted}", None)
    return _Rule(False, f"needs opt_level {wanted}; it is {level}, {level_site(chain)}", None)


def level_site(chain: Sequence[Rules]) -> str:
    """Return where the level was set, for reasons."""
    for context in reversed(chain):
        if context.sets_level:
            return f"set at {context.site}"
    return "the default"


def _combined(scoped: Sequence[_Rule], final: _Rule) -> Decision:
    verdicts = {final.run, *(rule.run for rule in scoped)}
    if len(verdicts) == 1:
        return Decision(final.run, final.reason)
    reason = "; ".join(rule.reason for rule in (*scoped, final))
    pairs = tuple((rule.scope, rule.run) for rule in scoped if rule.scope is not None)
    return Decision(True, reason, NodeRules(pairs, final.run))


def _with_operators(backend: Backend | AnyRuntime, pass_: Runnable, decision: Decision) -> Decision:
    """Return the decision; negative if the target has none of the operators that the pass makes."""
    for name in pass_.info.makes:
        domain, _, op_type = name.rpartition("::")
        if backend.supports(op_type, domain):
            return decision
    needed = " or ".join(pass_.info.makes)
    return Decision(False, f"needs {needed}, which the backend {backend} does not have")


def _with_form(backend: Backend | AnyRuntime, pass_: Runnable, decision: Decision) -> Decision:
    """Return the decision; negative if the target wants quantised models in another form."""
    made, wanted = pass_.info.quantization, backend.quantization_form
    if made == wanted:
        return decision
    wish = f"wants {wanted}" if wanted != "none" else "does not want quantised models"
    return Decision(False, f"makes quantised {made}; the backend {backend} {wish}")


def _with_dependencies(
    chain: Sequence[Rules], pass_: Runnable, place: Place, decision: Decision
) -> Decision:
    """Return the decision; negative if a dependency is disabled."""
    for needed in registry.dependencies(pass_.info):
        rules = _mentions(chain, needed, place.beside(pass_.name))
        rule = next((rule for rule in rules if rule.scope is None), None)
        if rule is not None and not rule.run:
            reason = f"needs {needed.name}, which is {rule.reason}"
            if chain[-1].strict:
                raise UsageError(f"{pass_.name} {reason}")
            return Decision(False, reason)
    return decision
