"""What the analysis of a batch knows of the tensors of a model, by their names."""

import contextlib
from collections.abc import Mapping

from tests.small import named, parsed
from tiered import Model
from tiered.analysis.batching.another_size import rebatch
from tiered.analysis.batching.following import Following
from tiered.analysis.batching.rules import rule_of
from tiered.analysis.batching.sample_facts import Fact, RefusedTensor
from tiered.support.errors import ShapeError

X = {"x": 0}


def facts_of(
    text: str, places: Mapping[str, int] = X, *, opset: int = 21
) -> tuple[dict[str, Fact], Following]:
    """Return the facts of all values, of refused ones too, and the analysis.

    Args:
        text: of the model; inputs named in `places` carry the samples on these axes.
        places: the axis of the batch, by input.
        opset: of the model.
    """
    model = parsed(text, opset=opset)
    axes = {named(model, name): axis for name, axis in places.items()}
    value, axis = next(iter(axes.items()))
    old = value.dim(axis)
    assert isinstance(old, int)
    state = Following(model, axes, old, "batch", rule_of)
    with contextlib.closing(state), contextlib.suppress(ShapeError):
        state.run()
    return {value.name: fact for value, fact in state.facts.items() if value is not None}, state


def fact_of(
    text: str, places: Mapping[str, int] = X, *, of: str = "y", opset: int = 21
) -> Fact | None:
    """Return what is known of a value; None if it is the same for every batch."""
    return facts_of(text, places, opset=opset)[0].get(of)


def why_not(text: str, places: Mapping[str, int] = X, *, of: str = "y", opset: int = 21) -> str:
    """Return why a value does not follow from single samples."""
    fact = fact_of(text, places, of=of, opset=opset)
    assert isinstance(fact, RefusedTensor), f"{of} is {fact}"
    return fact.reason


def fact_or_why_not(
    text: str, places: Mapping[str, int] = X, *, of: str = "y", opset: int = 21
) -> tuple[Fact | str | None, int]:
    """Return what is known of a value, or why it does not follow from single samples, and how many
    edits make the model right for any batch."""
    facts, state = facts_of(text, places, opset=opset)
    fact = facts.get(of)
    return fact.reason if isinstance(fact, RefusedTensor) else fact, len(state.edits)


def edits_of(text: str, places: Mapping[str, int] = X) -> int:
    """Return how many edits make the model right for any batch."""
    return len(facts_of(text, places)[1].edits)


def rebatched(text: str, places: Mapping[str, int] = X) -> str:
    """Return the nodes of a model after edits for any batch: operators, attributes, and constants
    of few elements by their slots."""
    model = parsed(text)
    rebatch(model, {named(model, name): axis for name, axis in places.items()}, "N")
    return nodes_of(model)


def nodes_of(model: Model) -> str:
    """Return the nodes of a model: operators, attributes, and constants of few elements."""
    written = []
    for node in model.main.topological_order():
        if node.is_op("Constant"):
            continue
        parts = [
            f"{name}={[*value] if isinstance(value, tuple) else value}"
            for name, value in sorted(node.attributes.items())
        ]
        for at, operand in enumerate(node.inputs):
            array = None if operand is None else operand.const
            if array is not None and array.size < _FEW:
                parts.append(f"{at}:{array.ravel().tolist()}")
        written.append(" ".join([node.op_type, *(part.replace(" ", "") for part in parts)]))
    return "; ".join(written)


_FEW = 9
