"""Samples through RNN, GRU and LSTM: states get a row for each sample."""

from tests.analysis.batching.facts_of import X, fact_or_why_not, facts_of
from tiered.analysis.batching.sample_facts import BatchRows

LAST, FIRST = {"x": 1}, {"x": 0}


def model(nodes: str, gates: int) -> str:
    """Return a model of a sequence of 3 for 2 samples, or of 2 for 3 where the batch is first."""
    return f"""(float[3,2,4] x, float[1,{5 * gates},4] w, float[1,{5 * gates},5] r,
        float[1,{10 * gates}] b, int32[2] n, float[1,{3 * 5}] p) => (y)
        <float[1,2,5] h = {{1,2,3,4,5,1,2,3,4,5}}, float[1,2,5] g = {{1,2,3,4,5,5,4,3,2,1}},
        float[1,1,5] one = {{1,2,3,4,5}}, float[3,1,5] f = {{1,2,3,4,5,1,2,3,4,5,1,2,3,4,5}}>
        {{ {nodes} }}"""


def test_where_the_samples_of_results_are_and_how_many_states_are_spread() -> None:
    differs = "its operand '{}' differs from sample to sample".format
    mixes = "it computes a result from several samples: axis {} of {!r} is the batch".format
    for line, gates, places, expected, edits in (
        ("y = GRU<hidden_size=5>(x, w, r)", 3, LAST, BatchRows(2), 0),
        ("y = RNN<hidden_size=5>(x, w, r, b)", 1, LAST, BatchRows(2), 0),
        ("y = LSTM<hidden_size=5>(x, w, r, b, , h, h)", 4, LAST, BatchRows(2), 2),
        ("y = LSTM<hidden_size=5>(x, w, r, b, , , h)", 4, LAST, BatchRows(2), 1),
        ("y = LSTM<hidden_size=5>(x, w, r, b, , h)", 4, LAST, BatchRows(2), 1),
        ("y = GRU<hidden_size=5>(x, w, r, b, n)", 3, {**LAST, "n": 0}, BatchRows(2), 0),
        ("y = GRU<hidden_size=5>(x, w, r, b, n)", 3, LAST,
         "its value 'n' bakes the batch of 2: it may have other numbers for each sample", 0),
        ("y = RNN<hidden_size=5>(x, w, r, , , g)", 1, LAST,
         "its constant 'g' bakes the batch of 2: it has other numbers for each sample", 0),
        ("y = RNN<hidden_size=5>(x, w, r, , , one)", 1, LAST,
         "'one' has size 1 along the batch", 0),
        ("y = GRU<hidden_size=5, layout=1>(x, w, r)", 3, FIRST, BatchRows(0), 0),
        ("y = GRU<hidden_size=5, layout=1>(x, w, r, , , f)", 3, FIRST, BatchRows(0), 1),
        ("y = GRU<hidden_size=5>(x, w, r)", 3, FIRST, mixes(0, "x"), 0),
        ("y = GRU<hidden_size=5, layout=1>(x, w, r)", 3, LAST, mixes(1, "x"), 0),
        ("y = GRU<hidden_size=5>(x, w, r)", 3, {"x": 2}, mixes(2, "x"), 0),
        ("y = RNN<hidden_size=5>(x, w, r)", 1, {**X, "w": 0}, differs("w"), 0),
        ("y = RNN<hidden_size=5>(x, w, r)", 1, {**X, "r": 0}, differs("r"), 0),
        ("y = RNN<hidden_size=5>(x, w, r, b)", 1, {**X, "b": 0}, differs("b"), 0),
        ("y = LSTM<hidden_size=5>(x, w, r, b, , h, h, p)", 4, {**LAST, "p": 0}, differs("p"), 0),
    ):  # fmt: skip
        assert fact_or_why_not(model(line, gates), places) == (expected, edits), line


def test_the_last_states_have_the_samples_on_another_axis_than_the_sequence() -> None:
    for line, gates, axes in (
        ("y, a, b2 = LSTM<hidden_size=5>(x, w, r)", 4, {"y": 2, "a": 1, "b2": 1}),
        ("y, a = GRU<hidden_size=5>(x, w, r)", 3, {"y": 2, "a": 1}),
        ("y, a, b2 = LSTM<hidden_size=5, layout=1>(x, w, r)", 4, {"y": 0, "a": 0, "b2": 0}),
    ):
        facts, _ = facts_of(model(line, gates), FIRST if "layout" in line else LAST)
        del facts["x"]
        assert facts == {name: BatchRows(axis) for name, axis in axes.items()}, line
