"""What mixes samples, or bakes their number otherwise, is named with the reason."""

import pytest

from tests.analysis.batching.by_sample import changed
from tests.analysis.batching.facts_of import fact_of, fact_or_why_not, facts_of, why_not
from tests.small import named, parsed
from tiered import Model, ShapeError, get_pass
from tiered.analysis.batching import following
from tiered.analysis.batching.another_size import rebatch
from tiered.analysis.batching.following import Following
from tiered.analysis.batching.rules import rule_of
from tiered.analysis.batching.sample_facts import (
    BatchRefusal,
    BatchRows,
    Counted,
    Listed,
    RefusedTensor,
)
from tiered.graph.shape_inference.symbolic_dims import multiply
from tiered.testing import parse

MIXED = {
    "Gather of one row": (
        "(float[1,3] x) => (float[3] y) <int64 i = {0}> { y = Gather(x, i) }",
        "places in 'i'",
    ),
    "Gather of a list": (
        "(float[1,3] x) => (float[1,3] y) <int64[1] i = {0}> { y = Gather(x, i) }",
        "places in 'i'",
    ),
    "Slice": (
        "(float[1,3] x) => (float[1,3] y) <int64[1] s = {0}, int64[1] e = {1}> { y = Slice(x, s, e) }",
        "some of the samples: elements 0 to 1 of a batch of 1",
    ),
    "Softmax": (
        "(float[1,3] x) => (float[1,3] y) { y = Softmax<axis = 0>(x) }",
        "axis 0 of 'x' is the batch",
    ),
    "sum": (
        "(float[1,3] x) => (float[3] y) <int64[1] a = {0}> { y = ReduceSum<keepdims = 0>(x, a) }",
        "axis 0 of 'x' is the batch",
    ),
    "sum of all": (
        "(float[1,3] x) => (float y) { y = ReduceSum<keepdims = 0>(x) }",
        "axis 0 of 'x' is the batch",
    ),
    "ArgMax": (
        "(float[1,3] x) => (int64[1,3] y) { y = ArgMax<axis = 0>(x) }",
        "axis 0 of 'x' is the batch",
    ),
    "TopK": (
        "(float[1,3] x) => (float[1,3] y, int64[1,3] i) <int64[1] k = {1}> { y, i = TopK<axis = 0>(x, k) }",
        "axis 0 of 'x' is the batch",
    ),
    "CumSum": (
        "(float[1,3] x) => (float[1,3] y) <int64 a = {0}> { y = CumSum(x, a) }",
        "axis 0 of 'x'",
    ),
    "BatchNormalization in training": (
        """(float[1,2,3] x) => (float[1,2,3] y, float[2] m, float[2] v)
        <float[2] a = {1,1}, float[2] b = {0,0}> { y, m, v = BatchNormalization<training_mode = 1>(x, a, b, b, a) }""",
        "its output 'm' has no rule",
    ),
    "features": (
        "(float[1,3] x) => (float[2] y) <int64[1] s = {3}, float[3,2] w = {1,2,3,4,5,6}> { r = Reshape(x, s)  y = MatMul(r, w) }",
        "axis 0 of 'r' is the batch",
    ),
    "Concat along the batch": (
        "(float[1,3] x) => (float[2,3] y) { y = Concat<axis = 0>(x, x) }",
        "axis 0 of 'x'",
    ),
    "Split of the batch": (
        "(float[2,3] x) => (float[1,3] y, float[1,3] z) { y, z = Split<axis = 0, num_outputs = 2>(x) }",
        "splits the axis of a batch of 2",
    ),
    "one sample that is broadcast": (
        "(float[1,3] x) => (float[2,3] y) <float[2,1] w = {1,2}> { y = Mul(x, w) }",
        "axis 0 of 'x' is the batch",
    ),
    "a product of samples": (
        "(float[1,3] x) => (float[1,1] y) { t = Transpose(x)  y = MatMul(x, t) }",
        "axis 0 of 'x' is the batch",
    ),
    "a product of samples by onnxruntime": (
        "(float[1,3] x) => (float[1,1] y) { y = com.microsoft.FusedMatMul<transB = 1>(x, x) }",
        "axis 0 of 'x' is the batch",
    ),
    "a sum over samples by onnxruntime": (
        """(float[1,3] x) => (float[3,2] y) <float[1,2] w = {1,2}> {
        y = com.microsoft.FusedMatMul<transA = 1>(x, w) }""",
        "axis 0 of 'x' is the batch",
    ),
    "a batch of matrices that moves": (
        """(float[1,2,2,3] x) => (float[2,2,1,3] y) {
        y = com.microsoft.FusedMatMul<transBatchA = 1, transBatchB = 1, transB = 1>(x, x) }""",
        "it transposes its batch",
    ),
    "a mask of lengths and starts": (
        f"""(float[1,3,4] x, int32[2] m) => (float[1,3,4] y)
        <float[4,12] w = {{{",".join(["1"] * 48)}}}, float[12] b = {{{",".join(["1"] * 12)}}}> {{
        y = com.microsoft.Attention<num_heads = 2>(x, w, b, m) }}""",
        "its mask 'm' has more than a number for each sample",
    ),
    "a sequence of what samples share": (
        """(float[1,3] x) => (float[1,6] y) <float[1,3] w = {1,2,3}> {
        s = SequenceConstruct(w)  t = SequenceInsert(s, x)  y = ConcatFromSequence<axis = 1>(t) }""",
        "its sequence has tensors that all samples share",
    ),
    "a sequence of samples": (
        """(float[2,3] x) => (float[1,3] y) <int64 i = {0}> {
        s = SplitToSequence<axis = 0>(x)  y = SequenceAt(s, i) }""",
        "splits the axis of a batch of 2",
    ),
    "a place of each of two samples for all": (
        """(float[2,3] x, int64[2] t) => (float[2,2] y) <int64[1] a = {1}> {
        m = ArgMax<axis = 1, keepdims = 0>(x)  y = Gather<axis = 1>(x, m) }""",
        "it takes other places for each sample",
    ),
    "places of maxima in two samples": (
        """(float[2,1,2,2] x) => (float[2,1,1,1] y, int64[2,1,1,1] i) { y, i = MaxPool<kernel_shape = [2,2]>(x) }""",
        "its output 'i' counts through a batch of 2",
    ),
    "places in two samples of another size": (
        """(float[2,1,2,2] x) => (float[2,1,3,2] z) <int64[4] s = {2,1,3,2}> {
        y, i = MaxPool<kernel_shape = [2,2]>(x)  z = MaxUnpool<kernel_shape = [2,2]>(y, i, s) }""",
        "its places count through samples of another size",
    ),
    "two images compared with each of two kernels": (
        "(float[2,2,3,3] x) => (float[2,2,1,1] y) { y = Conv(x, x) }",
        "Conv 'y': it computes a result from several",
    ),
    "an operator of another domain": (
        "(float[1,3] x) => (float[1,3] y) { y = com.microsoft.Inverse(x) }",
        "it has no rule",
    ),
    "a repeated batch": (
        "(float[1,3] x) => (float[4,3] y) <int64[2] s = {4,3}> { y = Expand(x, s) }",
        "repeats the axis of a batch of 1",
    ),
    "a padded batch": (
        "(float[1,3] x) => (float[2,3] y) <int64[4] p = {1,0,0,0}> { y = Pad(x, p) }",
        "pads the axis of a batch of 1",
    ),
    "a resized batch": (
        "(float[1,1,2] x) => (float[2,1,2] y) <float[3] s = {2,1,1}> { y = Resize(x, , s) }",
        "resizes the axis",
    ),
    "the size of the batch": (
        """(float[2,3] x) => (float[2,3] y) <int64 zero = {0}> {
        s = Shape(x)  n = Gather(s, zero)  f = Cast<to = 1>(n)  y = Div(x, f) }""",
        "computes with the size of the batch",
    ),
    "the number of a sample": (
        """(float[1,3] x) => (float[1,3] y) <int64 zero = {0}, int64 one = {1}, int64[1] a = {1}> {
        s = Shape(x)  n = Gather(s, zero)  r = Range(zero, n, one)  u = Unsqueeze(r, a)  f = Cast<to = 1>(u)
        y = Add(x, f) }""",
        "differs from sample to sample|numbers of samples|counts the samples",
    ),
    "random numbers": (
        "(float[1,3] x) => (float[1,3] y) { r = RandomNormal<shape = [1,3]>()  y = Add(x, r) }",
        "RandomNormal 'r': it draws random numbers for a batch of 1",
    ),
    "a bound that depends on their number": (
        """(float[1,3] x) => (float[1,c] y) <int64 zero = {0}, int64[1] two = {2}, int64[1] one = {1}, int64[1] a = {0}> {
        s = Shape(x)  n = Gather(s, zero)  u = Unsqueeze(n, a)  p = Add(u, two)  h = Div(p, two)
        y = Slice(x, a, h, one) }""",
        "bounds depend on the size|how 'h' depends on the size of the batch is not known",
    ),
    "ranges of all samples": (
        "(float[1,3] x) => (uint8[1,3] y, float s, uint8 z) { y, s, z = DynamicQuantizeLinear(x) }",
        "its scale follows from the elements of all samples",
    ),
    "a condition": (
        """(float[1,3] x) => (float[1,3] y) { m = ReduceMax<keepdims = 0>(x)  c = Cast<to = 9>(m)
        y = If(c) <then_branch = t () => (float[1,3] a) { a = Relu(x) }, else_branch = e () => (float[1,3] b) { b = Neg(x) }> }""",
        "ReduceMax 'm': it computes a result from several samples",
    ),
    "a Scan over samples": (
        """(float[1,3] x) => (float[3] y, float[1,3] z) <float[3] k = {0,0,0}> {
        y, z = Scan<num_scan_inputs = 1, body = b (float[3] s, float[3] e) => (float[3] o, float[3] p) {
            o = Add(s, e)  p = Tanh(o) }>(k, x) }""",
        "goes from sample to sample",
    ),
    "other numbers for each sample": (
        "(float[2,3] x) => (float[2,3] y) <float[2,1] w = {1,2}> { y = Add(x, w) }",
        "its constant 'w' bakes the batch of 2",
    ),
    "other positions for each sample": (
        "(float[2,2] x) => (float[2,2] y) <int64[2,2] p = {0,1,1,0}, float[2] t = {1,2}> { g = Gather(t, p)  y = Add(x, g) }",
        "its value 'g' bakes the batch of 2: it may have other numbers",
    ),
    "rows that are other ones": (
        "(float[2,2] x) => (float[2,2] y) <int64[2] p = {1,0}, float[2,2] t = {1,2,3,4}> { g = Gather<axis = 1>(t, p)  y = Add(x, g) }",
        "its value 'g' bakes the batch of 2: it may have other numbers",
    ),
    "no whole samples": (
        "(float[4,6] x) => (float[3,8] y) <int64[2] s = {3,8}> { [view] y = Reshape(x, s) }",
        r"Reshape 'view': it makes \[3, 8\] of \[4, 6\], which is baked into its constant 's'",
    ),
    "an index that is no constant": (
        "(float[1,3] x, int64[1] i) => (float[1,3] y) { y = Gather(x, i) }",
        "places in 'i'|other places",
    ),
}


@pytest.mark.parametrize("name", MIXED)
def test_what_mixes_samples_is_named(name: str) -> None:
    text, reason = MIXED[name]
    model = Model.from_proto(parse(text))
    before = model.to_proto().SerializeToString(deterministic=True)
    with pytest.raises(ShapeError, match=reason):
        get_pass("change_batch", size=8, axes={"x": 0}).apply(model)
    assert model.to_proto().SerializeToString(deterministic=True) == before


def test_a_choice_that_leads_nowhere_is_named_with_the_refusal() -> None:
    text = """(float[1,1,3] x) => (float[1,1,3] y) <int64[3] s = {1,1,3}, float[1,1,3] w = {1,2,3}> {
        [view] r = Reshape(x, s)  a = Softmax<axis = 0>(r)  y = Softmax<axis = 1>(a) }"""
    with pytest.raises(
        ShapeError, match=r"Softmax .*; before it, Reshape 'view' makes .* constant 's'"
    ):
        changed(text, 4)


def test_what_no_output_needs_may_mix_samples() -> None:
    text = """(float[1,3] x) => (float[1,3] y) { dead = Softmax<axis = 0>(x)  y = Relu(x) }"""
    made, *_ = changed(text, 4)
    assert made.graph.output[0].type.tensor_type.shape.dim[0].dim_value == 4


# --- what is known of tensors ---------------------------------------------------------------------


def test_sizes_are_counted_with_the_batch() -> None:
    text = """(float[2,3] x, float[4] w) => (float[2,3] y) <int64 zero = {0}, int64 one = {1}> {
        s = Shape(x)  n = Gather(s, zero)  m = Gather(s, one)  k = Mul(n, m)  z = Size(x)
        v = Shape(w)  d = Sub(n, n)  y = Relu(x) }"""
    facts, _ = facts_of(text)
    assert {name for name, fact in facts.items() if fact == Counted()} == {"s", "n", "k", "z"}
    assert facts["y"] == BatchRows(0)


def test_random_numbers_are_drawn_for_the_present_batch() -> None:
    text = "(float[2,3] x) => (float[2,3] y) { r = RandomNormal<shape=[2,3]>()  y = Add(x, r) }"
    assert why_not(text) == "it draws random numbers for a batch of 2"


def test_a_reason_is_that_of_the_first_node() -> None:
    text = (
        "(float[2,3] x) => (float[2,3] y) { a = Softmax<axis=0>(x)  b = Neg(a)  y = acme.Any(b) }"
    )
    facts, _ = facts_of(text)
    assert facts["a"] == facts["b"] == facts["y"]
    assert isinstance(facts["y"], RefusedTensor)
    assert facts["y"].node.op_type == "Softmax"


def test_edits_of_a_node_that_is_refused_are_dropped() -> None:
    text = """(float[1,3] x) => (seq(float[1,3]) y) <float[1,3] k = {1,2,3}, float[4,3] w = {1,2,3,1,2,3,1,2,3,1,2,3}>
        { y = SequenceConstruct(x, k, w) }"""
    facts, state = facts_of(text)
    assert facts["y"] == RefusedTensor(state.model.main.nodes[0], "'w' has size 4 along the batch")
    assert not state.edits


def test_numbers_of_samples_are_no_output() -> None:
    text = """(float[2,3] x) => (int64[2] y) <int64 zero = {0}, int64 one = {1}> {
        s = Shape(x)  n = Gather(s, zero)  y = Range(zero, n, one) }"""
    model = parsed(text)
    with pytest.raises(ShapeError, match="Range 'y': the output 'y' counts the samples"):
        rebatch(model, {named(model, "x"): 0}, 4)


def test_a_size_of_the_batch_is_no_output() -> None:
    model = parsed("(float[2,3] x) => (int64[2] y) { y = Shape(x) }")
    with pytest.raises(ShapeError, match="Shape 'y': the output 'y' counts the samples"):
        rebatch(model, {named(model, "x"): 0}, 4)


@pytest.mark.parametrize(
    ("sizes", "reason"),
    [("2,3", ""), ("4,3", "'k' has size 4 along the batch")],
)
def test_equal_numbers_for_each_sample_are_checked(sizes: str, reason: str) -> None:
    state = analysis(f"(float[2,3] x, float[{sizes}] k) => (float[2,3] y) {{ y = Relu(x) }}")
    value = named(state.model, "k")
    with pytest.raises(BatchRefusal) as caught:
        state.check_uniform(value, BatchRows(0))
    assert str(caught.value) == (
        reason or "its value 'k' bakes the batch of 2: it may have other numbers for each sample"
    )


def test_factors_and_dims_behind_those_of_the_batch_are_static() -> None:
    state = analysis("(float[2,3] x, float[8,S] k) => (float[2,3] y) { y = Relu(x) }")
    k, x = named(state.model, "k"), named(state.model, "x")
    state.check_static(x, BatchRows(0, 1, 4))
    state.check_static(k, BatchRows(1))
    for value, rows in (
        (k, BatchRows(0, 1, 4)),
        (x, BatchRows(0, state.batch)),
        (x, BatchRows(0, 1, state.batch)),
    ):
        with pytest.raises(BatchRefusal, match="has dynamic dims behind those of the batch"):
            state.check_static(value, rows)
    assert state.known_size(BatchRows(0, 2, 3)) == multiply(6, state.batch)
    for rows in (BatchRows(0, state.batch), BatchRows(0, 1, state.batch)):
        with pytest.raises(BatchRefusal, match="the axis of the batch has a dynamic factor"):
            state.known_size(rows)


def test_sizes_of_a_value_are_the_present_ones_or_those_of_any_batch() -> None:
    state = analysis("(float[2,3] x, float[S] k) => (float[2,3] y) { a = Abs(x)  y = Relu(a) }")
    a = named(state.model, "a")
    state.learn(a, BatchRows(0))
    assert state.sizes(a) == (2, 3)
    assert state.sizes_now(a) == (state.batch, 3)
    assert state.rank(a) == 2
    state.learn(a, BatchRows(1, 1, 3))
    assert state.sizes_now(a) == (2, multiply(3, state.batch))
    state.learn(a, None)
    assert state.sizes_now(a) == (2, 3)
    with pytest.raises(BatchRefusal, match="the rank of '' is not known"):
        state.sizes(None)


def test_what_an_operand_is_known_to_be() -> None:
    state = analysis("(float[2,3] x, float[2] k) => (float[2,3] y) { y = Add(x, k) }")
    (node,) = state.model.main.nodes
    x, k = named(state.model, "x"), named(state.model, "k")
    state.learn(x, BatchRows(0, step=3))
    assert state.rows(node, 0) == BatchRows(0)
    assert (state.step(node, 0), state.step(node, 1)) == (3, 0)
    assert state.in_rows(node) == {0: BatchRows(0)}
    state.shared(node, 1)
    with pytest.raises(BatchRefusal, match="its operand 'x' differs from sample to sample"):
        state.shared(node, 1, 0)
    for fact, reason in (
        (Counted(), "it computes with the size of the batch"),
        (RefusedTensor(node, "why"), "why"),
        (Listed(0, node), "its operand 'k' lists what is found in all samples"),
    ):
        state.learn(k, fact)
        with pytest.raises(BatchRefusal) as caught:
            state.rows(node, 1)
        assert str(caught.value) == reason
        assert caught.value.origin == (fact if isinstance(fact, RefusedTensor) else None)


def test_another_possibility_is_tried_where_the_first_one_mixes_samples() -> None:
    text = """(float[1,1,3] x) => (float[1,1,3] y) <int64[3] s = {1,1,3}> {
        r = Reshape(x, s)  y = Softmax<axis=0>(r) }"""
    facts, state = facts_of(text)
    assert facts["r"] == facts["y"] == BatchRows(1)
    assert len(state.edits) == 1
    facts, _ = facts_of(text.replace("axis=0", "axis=1"))
    assert facts["y"] == BatchRows(0)


def test_possibilities_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert following.MOST_TRIES == 200
    text = """(float[1,1,1,3] x) => (float[1,1,1,3] y) <int64[4] s = {1,1,1,3}> {
        r = Reshape(x, s)  a = Softmax<axis=0>(r)  y = Softmax<axis=1>(a) }"""
    reason = "it computes a result from several samples: axis {} of '{}' is the batch"
    for most, expected in (
        (3, BatchRows(2)),
        (2, reason.format(1, "a")),
        (1, reason.format(0, "r")),
    ):
        monkeypatch.setattr(following, "MOST_TRIES", most)
        assert fact_or_why_not(text)[0] == expected, most


def test_a_batch_that_only_a_dynamic_shape_decides_is_refused() -> None:
    text = "(float[2,3] x, int64[2] s) => (float[A,B] y) { y = Reshape(x, s) }"
    assert isinstance(fact_of(text), RefusedTensor)


LISTED = """(float[1,5,4] x, float[1,2,5] z) => (int64[A,B] y) <int64 m = {2}> {
    n = NonMaxSuppression(x, z, m)  y = LINE }"""


def test_lists_of_what_is_found_have_rules_of_their_own() -> None:
    places = {"x": 0, "z": 0}
    reason = "how many entries a sample has in its list is known in a run only"
    assert why_not(LISTED.replace("LINE", "acme.Any(n)"), places) == reason
    assert isinstance(fact_of(LISTED.replace("LINE", "Identity(n)"), places), Listed)


def test_elements_are_known_in_part_unless_they_count_the_samples() -> None:
    state = analysis(
        """(float[2,3] x, int64[1] z) => (float[2,3] y) <int64[1] k = {7}> {
        t = Concat<axis=0>(k, z)  y = Relu(x) }"""
    )
    value = named(state.model, "t")
    assert state.elements(value) == [7, None]
    state.learn(value, Counted())
    with pytest.raises(BatchRefusal) as caught:
        state.elements(value)
    assert str(caught.value) == "how 't' depends on the size of the batch is not known"


def test_a_node_without_outputs_is_left_out() -> None:
    proto = parse("(float[2,3] x) => (float[2,3] y) { y = Relu(x) }")
    proto.graph.node.add(op_type="Any", domain="acme", input=["x"], output=[""])
    model = Model.from_proto(proto)
    state = Following(model, {named(model, "x"): 0}, 2, "batch", rule_of)
    state.run()
    assert state.facts[named(model, "y")] == BatchRows(0)


def test_sizes_that_do_not_follow_are_named() -> None:
    state = analysis(
        """(float[2,3] x, float[] u) => (float[2,3] y) { q = SequenceConstruct(x)  v = acme.Any(u)
        y = Relu(x) }"""
    )
    q, v, y = state.model.main.nodes
    assert state.inferred(y) == (state.batch, 3)
    for node in (q, v):
        with pytest.raises(BatchRefusal, match="the shape of its result is not known"):
            state.inferred(node)


RANDOM = """(float[2,3] x) => (y) <float[3] k = {1,2,3}, float p = {0.5}, bool t = {1}> {
    r = CALL  y = Add(x, r) }"""


def test_what_draws_random_numbers_without_samples_is_refused() -> None:
    reason = "it draws random numbers for a batch of 2"
    for call, expected in (
        ("RandomNormalLike(k)", reason),
        ("RandomNormal<shape=[3], seed=1.0>()", reason),
        ("Dropout(k, p, t)", reason),
        ("Dropout(k, p)", BatchRows(0)),
        ("acme.RandomNormal(k)", "its rank is not known"),
        ("acme.Any(k)", "its rank is not known"),
    ):
        assert fact_or_why_not(RANDOM.replace("CALL", call))[0] == expected, call


def test_sizes_of_sizes_count_unless_they_are_random() -> None:
    text = "(float[2,3] x) => (y) <int64[1] k = {1}> { s = Shape(x)  NODES }"
    for nodes, expected in (
        ("v, i = TopK(s, k)  y = Add(v, i)", Counted()),
        ("y = RandomUniformLike<dtype=1>(s)", "the operator may mix samples: it has no rule"),
        ("y = acme.Any(s)", "the operator may mix samples: it has no rule"),
        ("y = ConstantOfShape(s)", BatchRows(0)),
    ):
        assert fact_or_why_not(text.replace("NODES", nodes))[0] == expected, nodes


def test_a_rank_that_is_not_known_is_named() -> None:
    state = analysis("(float[2,3] x, float[] u) => (float[2,3] y) { y = Relu(x) }")
    with pytest.raises(BatchRefusal, match="the rank of 'u' is not known"):
        state.sizes(named(state.model, "u"))


def analysis(text: str) -> Following:
    """Return the analysis of a batch of two, before its run."""
    model = parsed(text)
    x = named(model, "x")
    state = Following(model, {x: 0}, 2, "batch", rule_of)
    state.learn(x, BatchRows(0))
    return state
