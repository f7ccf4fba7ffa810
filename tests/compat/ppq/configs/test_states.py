"""The states of configs: their numbers, and what follows which."""

from tests.recorded import assert_values
from tiered.compat.ppq.configs.states import TRANSITIONS, QuantizationStates


def test_states_have_numbers_kinds_and_followers() -> None:
    assert_values(__file__, {"S": QuantizationStates, "T": TRANSITIONS})
