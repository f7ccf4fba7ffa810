"""The constraints on an input of a small model, in short."""

from tests.small import parsed
from tiered.runtime.inputs.constraints import facts
from tiered.runtime.inputs.graph_facts import Fact


def facts_of(text: str, name: str = "i", *, opset: int = 21, is_float: bool = False) -> list[Fact]:
    """Return what is known of the values of an input."""
    return facts(parsed(text, opset=opset).main, name, is_float=is_float)


def only(text: str, name: str = "i", *, opset: int = 21) -> Fact:
    """Return the only constraint on an input."""
    (found,) = facts_of(text, name, opset=opset)
    return found
