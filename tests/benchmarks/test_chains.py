"""The benchmark of chains writes valid models and says which became slower."""

import onnx
import pytest

from benchmarks import chains


@pytest.mark.parametrize("seed", range(6))
def test_random_chains_are_valid_and_the_same_each_time(seed: int) -> None:
    model = chains.random_chain(seed)
    onnx.checker.check_model(model, full_check=True)
    assert model.SerializeToString() == chains.random_chain(seed).SerializeToString()


def test_a_row_says_what_became_of_a_chain() -> None:
    model = chains.unrolled_scan((1, 0, 2), 0, (2, 8, 4), 8, product=False)
    row = chains.measured("small", model, turns=4)
    assert row.transposes == (2, 0)
    assert row.nodes[0] == len(model.graph.node) > row.nodes[1]
    assert str(row).startswith("small")


@pytest.mark.parametrize(("low", "slower"), [(1.01, False), (1.03, True)])
def test_slower_is_what_lies_above_the_limit_altogether(low: float, slower: bool) -> None:
    row = chains.Row("small", (1, 1), (0, 0), (0.9, 0.95, 1.0), (low, 1.04, 1.1))
    assert row.is_slower is slower


def test_a_state_space_block_is_valid_and_grows_with_its_steps() -> None:
    short, long = (chains.state_space(steps, width=4, states=2) for steps in (3, 6))
    onnx.checker.check_model(short, full_check=True)
    assert len(long.graph.node) - len(short.graph.node) == 3 * 9
