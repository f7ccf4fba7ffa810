"""What the rules make of operators in corners: the outputs, or why not, and the nodes then."""

from tests.analysis.batching.facts_of import facts_of, rebatched
from tests.recorded import assert_values
from tiered import ShapeError
from tiered.analysis.batching.sample_facts import BatchRows, Listed, RefusedTensor


def rule(text: str, **axes: int) -> None:
    """Print what is known of the outputs of a model, and its nodes after the edits."""
    places = axes or {"x": 0}
    facts, state = facts_of(text, places)
    for value in state.model.main.outputs:
        fact = facts.get(value.name)
        if isinstance(fact, RefusedTensor):
            shown = f"refused at {fact.node.op_type}: {fact.reason}"
        elif isinstance(fact, Listed):
            shown = f"list along {fact.axis} of {fact.source.op_type}, step {fact.step}"
        elif isinstance(fact, BatchRows):
            step = f", step {fact.step}" if fact.step != 0 else ""
            shown = f"axis {fact.axis}: {fact.outer} * batch * {fact.inner}{step}"
        else:
            shown = "the same for every batch" if fact is None else "counts the samples"
        print(f"{value.name}: {shown}")
    try:
        print(rebatched(text, places))
    except ShapeError as error:
        print(error)


def test_what_the_rules_make_of_operators_in_corners() -> None:
    assert_values(__file__, {"rule": rule})
