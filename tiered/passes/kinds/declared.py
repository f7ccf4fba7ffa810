"""The words of declarations of passes, and the older words for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypedDict, cast

from tiered.support.errors import UsageError, did_you_mean
from tiered.support.loading import warn_of_move
from tiered.support.numerics import Numerics, Promise


class Declared(TypedDict, total=False):
    """The declarations of a pass besides its level; each is empty or false by default."""

    name: str
    """The name, if it is not the function's."""
    required: Iterable[str]
    """Passes that must have run since the last edit."""
    followed_by: Iterable[str]
    """Passes that run after this one when it changed something."""
    conflicts: Iterable[str]
    """Passes that must never be in one fixed point with this one."""
    makes: Iterable[str]
    """Operators beyond ONNX's own that it makes, "com.microsoft::BiasGelu": it runs only for a
    backend that has one of them; a rule's rewrite is undone where the backend does not take it."""
    may_make: Iterable[str]
    """Operators beyond ONNX's own that a rule makes where the model's opset has none that does: it
    runs for every backend, and is undone where the backend does not take one."""
    quantization: str
    """The form of quantised models that it makes, "operators" or "qdq": it runs only for a backend
    that wants that form, and a rule's rewrite is undone where the backend lacks the operator."""
    numerics: Promise | Numerics | str
    """Its promise about the outputs; `exact` by default. `tiered.verify` makes promises."""
    numerics_option: str
    """The option that sets the promise, and with it the lowest level: a `Numerics`, or a mode. A
    mode is reassociating unless it is false or empty."""
    legalizes: str | bool
    """Whether `legalize` may apply the rule to nodes that a target refuses; as a string, the name
    of the map of such rules that it belongs to, if it is not the default one."""
    changes_interface: bool
    """Whether it changes inputs, outputs or their types."""
    interface_options: Mapping[str, Any]
    """Options and their values with which it changes the interface; no level sets these values."""
    matches: Iterable[str]
    """Operators, "Conv" or "com.microsoft::BiasGelu", "function" for a local function, "body" for
    one of If, Loop and Scan: the function, or the class, is called only if the model has one of
    them. A rule takes them from its pattern."""
    touches: Iterable[str]
    """More operators that it rewrites or moves than it matches: names, "elementwise" for all that
    compute element by element, "*" for any. `tiered passes --op` goes by it."""
    analysis: bool
    """Whether it edits nothing: the journal must stay empty."""
    life: str
    """`preview`, `stable` (the default) or `deprecated`. No level runs a pass in preview: it runs
    if it is required, by name or as `life:preview`."""
    replacement: str
    """What to use instead of a deprecated pass."""
    precondition: Callable[..., object] | None
    """A function `(graph, ctx)`, of a module pass `(model, ctx)`, that must hold before it runs."""
    postcondition: Callable[..., object] | None
    """The same, for after it; if it does not hold, the pass is undone."""


def in_current_words(declared: Declared) -> Declared:
    """Return declarations by their current words; an older word warns at the decorator's caller.

    Raises:
        UsageError: a word is none of a declaration.
    """
    unknown = [word for word in declared if word not in Declared.__annotations__]
    if not unknown:
        return declared
    from tiered.support.moved import DECLARATIONS

    given: dict[str, Any] = dict(declared)
    for word in unknown:
        if word not in DECLARATIONS:
            hint = did_you_mean(word, Declared.__annotations__)
            raise UsageError(f"a pass declares no {word!r}{hint}")
        warn_of_move(f"{word}= of a pass", f"{DECLARATIONS[word]}=", stacklevel=4)
        given.setdefault(DECLARATIONS[word], given.pop(word))
    return cast("Declared", given)


def method_of(instance: object, word: str) -> Any:
    """Return the method of an object that is its `precondition` or `postcondition`, or None."""
    from tiered.support.moved import DECLARATIONS

    old = next(old for old, new in DECLARATIONS.items() if new == word)
    found = getattr(instance, old, None)
    if found is None:
        return getattr(instance, word, None)
    warn_of_move(f"{type(instance).__name__}.{old}", word, stacklevel=4)
    return found
