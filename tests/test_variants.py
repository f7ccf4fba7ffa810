"""Another outcome of a variant than the recorded one is found, and so is a wrong one."""

import pytest

from tests.conformance.variants import recorded
from tests.conformance.variants.recorded import Outcome, assert_as_recorded, fault_of
from tiered.passes import PassInfo
from tiered.pipeline import get_pass
from tiered.testing import parse

INFO: PassInfo = get_pass("eliminate_allowzero").info


def test_another_outcome_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    others = dict.fromkeys(recorded.recorded()[INFO.name], "none")
    monkeypatch.setattr(recorded, "recorded", lambda: {INFO.name: others})
    with pytest.raises(AssertionError, match="has another outcome"):
        assert_as_recorded(INFO)


def test_a_record_of_other_models_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded, "recorded", lambda: {INFO.name: {"elsewhere": "none"}})
    with pytest.raises(AssertionError, match="`make variants`"):
        assert_as_recorded(INFO)


@pytest.mark.parametrize(("operator", "fault"), [("Abs", ""), ("Neg", "y: "), ("Foo", "No Op")])
def test_a_wrong_result_is_a_fault(operator: str, fault: str) -> None:
    model, result = (
        parse(f"(float[2] x) => (float[2] y) {{ y = {name}(x) }}") for name in ("Abs", operator)
    )
    found = fault_of(INFO, model, Outcome(result, ()))
    assert fault in found
    assert bool(fault) == bool(found)
