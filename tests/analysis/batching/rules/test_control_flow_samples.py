"""The batch through the bodies of If, Loop and Scan."""

import pytest

from tests.analysis.batching.facts_of import fact_of, facts_of, why_not
from tiered.analysis.batching.sample_facts import BatchRows, Counted

IF = """(float[2,2] x, bool c, float[2,2] z) => (float[2,2] y) <float[2,2] same = {1,2,1,2},
    float[2,2] other = {1,2,3,4}> {
    y = If(c) <then_branch = t () => (float[2,2] p) { p = THEN },
               else_branch = e () => (float[2,2] q) { q = ELSE }> }"""


def branches(then: str, otherwise: str) -> str:
    return IF.replace("THEN", then).replace("ELSE", otherwise)


def test_both_branches_have_the_samples_on_one_axis() -> None:
    facts, state = facts_of(branches("Relu(x)", "Neg(x)"))
    assert facts["y"] == facts["p"] == facts["q"] == BatchRows(0)
    assert not state.edits
    assert {(graph.name, at): fact for (graph, at), fact in state.outputs.items()} == {
        ("g", 0): BatchRows(0), ("t", 0): BatchRows(0), ("e", 0): BatchRows(0),
    }  # fmt: skip


@pytest.mark.parametrize("texts", [("Relu(x)", "Identity(same)"), ("Identity(same)", "Relu(x)")])
def test_what_all_samples_share_in_a_branch_is_repeated(texts: tuple[str, str]) -> None:
    facts, state = facts_of(branches(*texts))
    assert facts["y"] == BatchRows(0)
    assert len(state.edits) == 1


def test_branches_without_samples_have_none() -> None:
    assert fact_of(branches("Identity(same)", "Neg(z)")) is None


@pytest.mark.parametrize(
    ("then", "otherwise", "reason"),
    [
        ("Relu(x)", "Transpose(x)", "'q' has the samples on another axis"),
        ("Softmax<axis=0>(x)", "Relu(x)",
         "it computes a result from several samples: axis 0 of 'x' is the batch"),
        ("Relu(x)", "Identity(other)",
         "its value 'q' bakes the batch of 2: it may have other numbers for each sample"),
    ],
)  # fmt: skip
def test_branches_that_differ_are_refused(then: str, otherwise: str, reason: str) -> None:
    assert why_not(branches(then, otherwise)) == reason


CONDITION = """(float[2,2] x) => (float[2,2] y) <int64 zero = {0}, int64 two = {2}, int64[1] first = {0}> {
    NODES
    y = If(c) <then_branch = t () => (float[2,2] p) { p = Relu(x) },
               else_branch = e () => (float[2,2] q) { q = Neg(x) }> }"""


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        ("s = Shape(x)  n = Gather(s, zero)  c = Less(n, two)",
         "its condition depends on the size of the batch"),
        ("m = ReduceMax<axes=[1], keepdims=0>(x)  c = Cast<to=9>(m)",
         "its condition differs from sample to sample"),
        ("m = Softmax<axis=0>(x)  c = Cast<to=9>(m)",
         "it computes a result from several samples: axis 0 of 'x' is the batch"),
    ],
)  # fmt: skip
def test_a_condition_is_the_same_for_every_sample(nodes: str, reason: str) -> None:
    assert why_not(CONDITION.replace("NODES", nodes), opset=12) == reason


# --- Loop -----------------------------------------------------------------------------------------

LOOP = """(float[1,3] x, bool[1] b) => (float[1,3] y, float[A,B,C] z)
    <float[1,3] k = {0,0,0}, int64 n = {3}, bool c = {1}, float[3] wide = {1,2,3}> {
    y, z = Loop(COUNT, c, START) <body = b (int64 i, bool g, float[1,3] s)
        => (bool h, float[1,3] o, float[1,3] p) { h = GO  o = STATE  p = SCANNED }> }"""


def loop(
    state: str, scanned: str = "Neg(o)", start: str = "k", go: str = "Identity(g)", count: str = "n"
) -> str:
    text = LOOP.replace("STATE", state).replace("SCANNED", scanned).replace("START", start)
    return text.replace("GO", go).replace("COUNT", count)


def test_a_state_that_gets_samples_has_them_from_the_start() -> None:
    facts, state = facts_of(loop("Add(s, x)"))
    assert facts["y"] == facts["s"] == BatchRows(0)
    assert (facts["p"], facts["z"]) == (BatchRows(0), BatchRows(1))
    assert len(state.edits) == 1


def test_a_state_with_samples_needs_no_edit() -> None:
    facts, state = facts_of(loop("Neg(s)", start="x"))
    assert (facts["y"], facts["z"]) == (BatchRows(0), BatchRows(1))
    assert not state.edits


def test_a_state_without_samples_stays() -> None:
    facts, _ = facts_of(loop("Neg(s)", scanned="Add(o, x)"))
    assert "y" not in facts
    assert facts["z"] == BatchRows(1)


def test_a_state_that_loses_its_samples_is_repeated() -> None:
    facts, state = facts_of(loop("Identity(k)", start="x"))
    assert facts["y"] == BatchRows(0)
    assert len(state.edits) == 1


def test_a_state_with_samples_on_another_axis_is_refused() -> None:
    text = """(float[1,1] x) => (float[1,1] y) <int64 n = {3}, bool c = {1}> {
        y = Loop(n, c, x) <body = b (int64 i, bool g, float[1,1] s) => (bool h, float[1,1] o)
            { h = Identity(g)  o = Transpose(s) }> }"""
    assert why_not(text) == "a state has the samples in another way in the next iteration"


def test_a_state_that_mixes_samples_is_refused() -> None:
    reason = "it computes a result from several samples: axis 0 of 's' is the batch"
    assert why_not(loop("Softmax<axis=0>(s)", start="x")) == reason


def test_trips_and_conditions_are_the_same_for_every_sample() -> None:
    assert why_not(loop("Neg(s)", go="Identity(b)", start="x"), {"x": 0, "b": 0}) == (
        "its condition differs from sample to sample"
    )
    text = """(float[1,3] x) => (float[1,3] y) <int64 zero = {0}, bool c = {1}> {
        d = Shape(x)  n = Gather(d, zero)
        y = Loop(n, c, x) <body = b (int64 i, bool g, float[1,3] s) => (bool h, float[1,3] o)
            { h = Identity(g)  o = Neg(s) }> }"""
    assert why_not(text) == "its trip count depends on the size of the batch"
    assert fact_of(text, of="n") == Counted()


def test_each_state_has_its_own_samples() -> None:
    text = """(float[1,3] x, float[3,1] v) => (float[1,3] y, float[3,1] z)
        <float[1,3] k = {0,0,0}, float[3,1] l = {0,0,0}, int64 n = {3}, bool c = {1}> {
        y, z = Loop(n, c, k, l) <body = b (int64 i, bool g, float[1,3] s, float[3,1] t)
            => (bool h, float[1,3] o, float[3,1] p) { h = Identity(g)  o = Add(s, x)  p = Add(t, v) }>
        }"""
    facts, state = facts_of(text, {"x": 0, "v": 1})
    assert (facts["y"], facts["z"]) == (BatchRows(0), BatchRows(1))
    assert len(state.edits) == 2
    # What all samples share in the end is repeated behind the last iteration too.
    text = text.replace("p = Add(t, v)", "p = Identity(l)").replace("k, l)", "k, v)")
    facts, state = facts_of(text, {"x": 0, "v": 1})
    assert facts["z"] == BatchRows(1)
    assert {(graph.name, at) for graph, at in state.outputs if graph.name == "b"} == {
        ("b", 1), ("b", 2),
    }  # fmt: skip


# --- Scan -----------------------------------------------------------------------------------------

SCAN = """(float[4,1,3] x, float[1,3] k) => (float[A,B] y, float[C,D,E] z) {
    y, z = Scan<num_scan_inputs = 1 ATTRIBUTES, body = b (float[A1,A2] s, float[B1,B2] e)
        => (float[A1,A2] o, float[B1,B2] p) { o = STATE  p = Tanh(e) }>(k, x) }"""


def scan(attributes: str = "", state: str = "Add(s, e)") -> str:
    more = f", {attributes}" if attributes else ""
    return SCAN.replace(" ATTRIBUTES", more).replace("STATE", state)


@pytest.mark.parametrize(
    ("attributes", "batch", "inside", "scanned"),
    [
        ("", 1, 0, 1),
        ("scan_output_axes = [1]", 1, 0, 0),
        ("scan_output_axes = [2]", 1, 0, 0),
        ("scan_output_axes = [-1]", 1, 0, 0),
        ("scan_input_axes = [-3]", 1, 0, 1),
    ],
)
def test_a_scan_goes_along_another_axis(
    attributes: str, batch: int, inside: int, scanned: int
) -> None:
    facts, state = facts_of(scan(attributes), {"x": batch})
    assert facts["e"] == BatchRows(inside)
    assert (facts["y"], facts["z"]) == (BatchRows(0), BatchRows(scanned))
    assert len(state.edits) == 1  # the state begins as a constant of all samples


def test_an_axis_before_that_of_the_scan_keeps_its_place() -> None:
    text = scan("scan_input_axes = [2], scan_output_axes = [2]", "Identity(s)").replace(
        "float[4,1,3] x", "float[1,3,4] x"
    )
    facts, _ = facts_of(text, {"x": 0})
    assert (facts["e"], facts["z"]) == (BatchRows(0), BatchRows(0))


def test_a_scan_along_the_batch_is_refused() -> None:
    text = scan(state="Identity(s)").replace("float[4,1,3] x", "float[2,1,3] x")
    assert why_not(text) == "it goes from sample to sample"


@pytest.mark.parametrize("opset", [9, 21])
def test_each_scanned_operand_has_its_own_samples(opset: int) -> None:
    text = """(float[4,1,3] x, float[1,4,3] v, float[1,3] k) => (float[1,3] y, float[4,1,3] z) {
        y, z = Scan<num_scan_inputs=2, scan_input_axes=[0, 1],
            body = b (float[A1,A2] s, float[B1,B2] e, float[C1,C2] f)
            => (float[A1,A2] o, float[B1,B2] p) { o = Add(s, e)  p = Add(e, f) }>(k, x, v) }"""
    facts, _ = facts_of(text, {"x": 1, "v": 0}, opset=opset)
    assert (facts["e"], facts["f"]) == (BatchRows(0), BatchRows(0))
    assert (facts["y"], facts["z"]) == (BatchRows(0), BatchRows(1))


def test_a_scan_of_opset_8_has_a_batch_of_its_own() -> None:
    text = """(float[2,4,3] x, float[2,3] k) => (float[2,3] y, float[2,4,3] z) {
        y, z = Scan<num_scan_inputs = 1, body = b (float[3] s, float[3] e)
            => (float[3] o, float[3] p) { o = Add(s, e)  p = Tanh(e) }>( , k, x) }"""
    assert why_not(text, {"x": 0}, opset=8) == "a Scan of opset 8 has a batch of its own"
