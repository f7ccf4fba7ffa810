"""What a pattern matches in the text of a model, for the tests of the matcher."""

from typing import Any

from tests.small import model
from tiered.rewriter import Match, Pattern, find_matches

X_TO_Y = "g (float[2,3] x) => (float[2,3] y)"
TWO = "g (float[2,3] x) => (float[2,3] y, float[2,3] z)"


def found(pattern: Pattern, text: str) -> list[Match]:
    return list(find_matches(model(text).main, pattern))


def matches(pattern: Pattern, body: str, signature: str = X_TO_Y) -> bool:
    return bool(found(pattern, f"{signature} {body}"))


def names(of: Any) -> Any:
    """Return the names of what is bound: of values and nodes, also in tuples."""
    if isinstance(of, tuple):
        return tuple(map(names, of))
    return None if of is None else getattr(of, "label", of)


def bound(pattern: Pattern, body: str, signature: str = X_TO_Y) -> dict[str, Any]:
    (match,) = found(pattern, f"{signature} {body}")
    return {name: names(value) for name, value in match.bindings.items()}
