"""Fewer axes hold the same elements in the same order."""

from itertools import permutations
from random import Random

import numpy as np
import pytest

from tests.small import content, ops, parsed
from tiered.analysis.axes.low_rank import around, lower_ranks, merged_broadcast, transposes
from tiered.runtime import run


@pytest.mark.parametrize("dims", [(2, 3, 4, 5, 6), (2, 1, 3, 1, 4), (2, 2, 2, 2, 2, 3), (1, 1, 1)])
def test_the_steps_do_what_the_permutation_does(dims: tuple[int, ...]) -> None:
    x = np.arange(np.prod(dims)).reshape(dims)
    for perm in permutations(range(len(dims))):
        found = x
        for read, order in transposes(dims, perm, 4):
            assert len(read) <= 4
            assert 1 not in read
            found = found.reshape(read).transpose(order)
        assert found.tobytes() == x.transpose(perm).tobytes(), perm


def test_neighbours_are_one_axis() -> None:
    windows = transposes((2, 8, 4, 8, 4, 16), (0, 1, 3, 2, 4, 5), 4)
    assert windows == [((16, 4, 8, 64), (0, 2, 1, 3))]
    assert transposes((2, 1, 3), (1, 0, 2), 4) == []
    assert transposes((2, 3, 4), (2, 0, 1), 4) == [((6, 4), (1, 0))]
    assert transposes((2, 3, 4, 5), (3, 2, 1, 0), 4) == [((2, 3, 4, 5), (3, 2, 1, 0))]


def test_a_broadcast_of_merged_axes_is_the_same() -> None:
    random = Random(0)
    for _ in range(200):
        result = tuple(random.choice((1, 2, 3)) for _ in range(5))
        shapes = []
        for _ in range(2):
            shape = tuple(size if random.random() < 0.6 else 1 for size in result)
            shapes.append(shape[random.randrange(6) :] if random.random() < 0.3 else shape)
        result = np.broadcast_shapes(*shapes)
        merged, target = merged_broadcast(shapes, result)
        a, b = (np.random.default_rng(at).random(shape) for at, shape in enumerate(shapes))
        low = a.reshape(merged[0]) + b.reshape(merged[1])
        assert np.array_equal(np.broadcast_to(low, target).ravel(), (a + b).ravel())


def test_the_elements_around_an_axis() -> None:
    assert around((2, 3, 4, 5), 2) == (6, 4, 5)
    assert around((2, 3, 4, 5), 0) == (1, 2, 60)
    assert around((2, 3, 4, 5), 1, 2) == (2, 12, 5)


def test_a_broadcast_has_as_few_axes_as_it_can() -> None:
    for shapes, result, merged, target in (
        ([(2, 3, 4), (2, 3, 4)], (2, 3, 4), [(24,), (24,)], (24,)),
        ([(2, 3, 4), (3, 4)], (2, 3, 4), [(2, 12), (1, 12)], (2, 12)),
        ([(2, 3, 4), (2, 1, 1)], (2, 3, 4), [(2, 12), (2, 1)], (2, 12)),
        ([(2, 3, 4), ()], (2, 3, 4), [(24,), ()], (24,)),
        ([(2, 3, 4), (1,)], (2, 3, 4), [(24,), (1,)], (24,)),
        ([(2, 1, 4), (3, 1)], (2, 3, 4), [(2, 1, 4), (1, 3, 1)], (2, 3, 4)),
        ([(2, 1, 3), (1, 1, 3)], (2, 1, 3), [(2, 3), (1, 3)], (2, 3)),
        ([(1, 1), (1,)], (1, 1), [(1,), (1,)], (1,)),
        ([(), ()], (), [(), ()], (1,)),
    ):
        assert merged_broadcast(shapes, result) == (merged, target), shapes


HIGH = """(float[32] x) => (float[U,4] y) <int64[5] s = {2,2,2,2,2}, int64[2] t = {-1,4},
    int64[2] ends = {0,4}, int64[2] twins = {1,2}, int64[1] none = {0}> {
    r = Reshape(x, s)  %s  y = Reshape(c, t) }"""


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        ("c = ReduceMax(r, ends)", "the axes that it combines are no neighbours"),
        ("c = Trilu(r)", "Trilu has no rule for lower ranks"),
        ("c = ReduceMax(r, twins)", None),
        ("c = Softmax<axis = 2>(r)", None),
    ],
)
def test_operators_of_one_axis_have_a_lower_rank(node: str, reason: str | None) -> None:
    model, said = parsed(HIGH % node), list[str]()
    model.refresh_types()
    before = content(model)
    lower_ranks(model.main, lambda node, skip: said.append(str(skip)), 4)
    assert said == ([] if reason is None else [reason])
    assert (content(model) == before) is (reason is not None)
    highest = max(value.rank or 0 for value in model.main.values.values())
    assert highest <= 4 or reason is not None


def test_a_rank_below_four_is_too_low() -> None:
    model, said = parsed(HIGH % "c = Softmax(r)"), list[str]()
    model.refresh_types()
    lower_ranks(model.main, lambda node, skip: said.append(str(skip)), 3)
    assert said == ["the highest rank is 3, under 4"]


NODES = """(float[72] x) => (float[U] y) <int64[5] s = {2,3,2,2,3}, int64[1] t = {-1},
    int64[2] ends = {0,4}, int64[2] twins = {1,2}, int64[1] two = {2}, float one = {1},
    int64 at = {3}, int64[1] first = {1}, float[3] row = {1,2,3}, float[3,1,1,1] column = {5,6,7},
    float[1,3,1,2,1] odd = {1,2,3,4,5,6}, bool[2,1,1,1,1] k = {1,0}, int64[2,1] ix = {1,0},
    int64[6] wide = {4,2,3,2,2,3}, int64[2] parts = {1,2}, float[2,3] low = {1,2,3,4,5,6},
    int64[2,1,1,1,2] nd = {0,1,1,2}, int64[1,5] all = {1,1,1,1,1},
    int64[2,1,1,2] deep = {0,1,2,1}, int64[2,1,1,2,3] few = {0,0,0,0,0,0,0,0,0,0,0,0},
    int64[2,1,1,1,1] own = {0,1}, int64[2] halves = {1,1}, int64[4] s4 = {2,3,2,6},
    float[2,1,2,1,1] four = {1,2,3,4}, int64[1,1,1,1,4] ix4 = {1,2,1,5}> {
    r = Reshape(x, s)  %s  y = Reshape(c, t) }"""
NO_NEIGHBOURS = "the axes that it combines are no neighbours"


def test_the_lower_rank_computes_the_same() -> None:
    x = np.random.default_rng(0).permutation(72).astype(np.float32)
    for nodes, expected in (
        ("c = Relu(r)", "Relu"),
        ("c = Add(r, r)", "Add"),
        ("c = Mul(row, r)", "Reshape Mul Reshape"),
        ("c = Mul(r, one)", "Mul"),
        ("c = Clip(r, , one)", "Clip"),
        ("c = Add(r, four)", "Reshape Add Reshape"),
        ("f = Reshape(x, s4)  c = GatherND(f, ix4)", "Reshape Reshape GatherND Reshape Reshape"),
        ("c = Where(k, r, column)", "Reshape Where Reshape"),
        ("c = ReduceMax(r, twins)", "Reshape ReduceMax Reshape"),
        ("c = ReduceMax(r)", "Reshape ReduceMax Reshape"),
        ("c = ReduceMax<keepdims=0>(r, two)", "Reshape ReduceMax Reshape Reshape"),
        ("a = ArgMax<axis=1>(r)  c = Cast<to=1>(a)", "Reshape ArgMax Reshape Cast"),
        ("c = Softmax<axis=2>(r)", "Reshape Softmax Reshape"),
        ("c = LogSoftmax<axis=0>(r)", "Reshape LogSoftmax Reshape"),
        ("c = Concat<axis=2>(r, r)", "Reshape Concat Reshape"),
        ("c = Concat<axis=-1>(r, r, r)", "Reshape Concat Reshape"),
        ("c = CumSum<reverse=1>(r, at)", "Reshape CumSum Reshape"),
        ("c, i = TopK<axis=4>(r, two)", "Reshape TopK Reshape"),
        ("c = Expand(r, wide)", "Reshape Expand Reshape"),
        ("c = Gather<axis=3>(r, ix)", "Reshape Gather Reshape"),
        ("c = Gather<axis=-4>(r, ix)", "Reshape Gather Reshape"),
        ("c = Gather(r, first)", "Reshape Gather Reshape"),
        ("c = Gather<axis=1>(low, deep)", "Reshape Gather Reshape"),
        ("c = GatherND(low, nd)", "Reshape GatherND Reshape Reshape"),
        ("p, q = Split<axis=1>(r, parts)  c = Concat<axis=1>(q, p)",
         "Reshape Split Concat Reshape"),
        ("p, q = Split<axis=-4>(r, parts)  c = Relu(q)", "Reshape Split Reshape Relu"),
        ("c = Transpose<perm=[0,2,1,3,4]>(r)", "Reshape Transpose Reshape"),
        ("c = Transpose<perm=[4,2,0,3,1]>(r)",
         "Reshape Transpose" + " Reshape Transpose" * 2 + " Reshape"),
        ("c = Transpose(r)", "Reshape Transpose" + " Reshape Transpose" * 3 + " Reshape"),
        ("c, m = Dropout(r)  v = Not(m)", "Reshape Dropout Not Dropout Not"),
        ("p, q = Split(r, halves)  c = Concat<axis=0>(q, p)", "Reshape Split Concat Reshape"),
        ("c = Clip(r, row)", "an operand beside the first one is no scalar"),
        ("c = GatherElements<axis=1>(r, few)", "it combines several axes"),
        ("c = GatherND<batch_dims=1>(low, own)", "GatherND has batch_dims, or data of rank 2"),
        ("c = Add(r, odd)", "the axes do not merge to rank 4"),
        ("c = Expand(odd, s)", "the axes do not merge to rank 4"),
        ("m = ReduceMax<keepdims=0>(x)  d = Cast<to=7>(m)  c = CumSum(r, d)",
         "its axis is not constant"),
        ("c = acme.Any(r)", "Any has no rule for lower ranks"),
        ("c = ReduceMin<noop_with_empty_axes=1>(r)", NO_NEIGHBOURS),
        ("c = ReduceMax(r, ends)", NO_NEIGHBOURS),
        ("c = ReduceSum(r, two)", "ReduceSum has no rule for lower ranks"),
        ("c = GatherND(r, all)", "GatherND has batch_dims, or data of rank 5"),
    ):  # fmt: skip
        model, said = parsed(NODES % nodes), list[str]()
        model.refresh_types()
        before, known = model.to_proto(), content(model)
        lower_ranks(model.main, lambda node, skip: said.append(str(skip)), 4)  # noqa: B023  # called at once
        if said:
            assert said == [expected], nodes
            assert content(model) == known, nodes
        else:
            assert " ".join(ops(model)) == expected, nodes
            same = run(model.to_proto(), {"x": x})["y"]
            assert np.array_equal(same, run(before, {"x": x})["y"]), nodes


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("(float[72] x) => (float[2,3,2,2,3] y) <int64[5] s = {2,3,2,2,3}> "
         "{ r = Reshape(x, s)  y = Relu(r) }", "a result of the graph has rank 5"),
        ("(float[2,3,2,2,3] x) => (float[72] y) <int64[1] s = {-1}> "
         "{ r = Relu(x)  y = Reshape(r, s) }", "an input of the graph has rank 5"),
        ("(float[N] x) => (float[M] y) <int64[5] s = {2,3,2,2,-1}, int64[1] t = {-1}> "
         "{ r = Reshape(x, s)  q = Relu(r)  y = Reshape(q, t) }", "the dims are not numbers"),
        ("(float[0] x) => (float[0] y) <int64[5] s = {2,3,2,2,0}, int64[1] t = {-1}> "
         "{ r = Reshape<allowzero=1>(x, s)  q = Relu(r)  y = Reshape<allowzero=1>(q, t) }",
         "a tensor is empty"),
        ("(float[72] x, bool b) => (float[72] y) <int64[5] s = {2,3,2,2,3}, int64[1] t = {-1}> "
         "{ r = Reshape(x, s)  q = Relu(r)  y = If(b) <then_branch = h () => (float[72] v) "
         "{ v = Reshape(q, t) }, else_branch = e () => (float[72] w) { w = Reshape(q, t) }> }",
         "a body reads a tensor of rank 5"),
        ("(float[72] x, float[] w) => (float[] y) <int64[5] s = {2,3,2,2,3}> "
         "{ r = Reshape(x, s)  y = Add(r, w) }", "the dims are not numbers"),
        ("(float[72] x) => (int64[M] y) <int64[5] s = {2,3,2,2,3}, int64[1] t = {-1}, "
         "int64[1] k = {1}, int64[2,3,2,2,1] i> "
         "{ r = Reshape(x, s)  , i = TopK(r, k)  y = Reshape(i, t) }",
         "a result is not named"),
        ('<ir_version: 7, opset_import: ["": 11]> g (float[72] x) => (float[72] y) '
         "<int64[5] s = {2,3,2,2,3}, int64[1] t = {-1}> "
         "{ r = Reshape(x, s)  q = Softmax<axis=1>(r)  y = Reshape(q, t) }",
         "Softmax has no rule for lower ranks"),
    ],
)  # fmt: skip
def test_tensors_that_others_know_keep_their_rank(text: str, reason: str) -> None:
    model, said = parsed(text), list[str]()
    model.refresh_types()
    before = content(model)
    lower_ranks(model.main, lambda node, skip: said.append(str(skip)), 4)
    assert said == [reason]
    assert content(model) == before


def test_a_node_that_is_unused_once_another_is_rewritten_is_left_out() -> None:
    """The second Reshape to `t` goes with the last reader of its result."""
    model = parsed("""(float[72] x) => (float[72] y, float[72] z)
        <int64[5] s = {2,3,2,2,3}, int64[1] t = {-1}> {
        r = Reshape(x, s)  h = Neg(r)  u = Relu(r)  k = Reshape(u, t)  w = Reshape(k, s)
        v = Add(h, w)  d = Reshape(v, t)  z = Exp(d)  c = Add(u, h)  y = Reshape(c, t) }""")
    model.refresh_types()
    lower_ranks(model.main, lambda node, skip: pytest.fail(str(skip)), 4)
    assert ops(model) == ["Neg", "Relu", "Add", "Exp", "Add"]
