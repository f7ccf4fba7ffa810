"""What a Transpose costs, depending on what reads the tensor."""

import pytest

from benchmarks import chains
from tiered import Model, get_pass
from tiered.analysis.layout.cost import (
    FREE,
    Cost,
    _most_time,
    tensor_costs_of,
    total,
    transpose_cost,
)
from tiered.analysis.layout.kernel_times import TRANSPOSE_START
from tiered.analysis.layout.layout_conversion import reach_of
from tiered.analysis.layout.sizes import LayoutSizes
from tiered.testing import parse


def starts(lines: str) -> dict[str, int]:
    """Return how many starts a Transpose of each tensor costs, by name.

    Args:
        lines: what makes `y` of `t`, the Transpose of the input.
    """
    head = "(float[8,6,4] x) => (float y) <int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = "
    text = head + "{2}, int64[2] halves = {2,2}> { t = Transpose<perm=[2,1,0]>(x) " + lines + " }"
    reach = reach_of(Model.from_proto(parse(text)))
    terms = tensor_costs_of(list(reach.operators.values()), LayoutSizes())
    return {tensor.root.name: term.start // TRANSPOSE_START for tensor, term in terms.items()}


SPLIT = "a, b = Split<axis=0>(r, halves)  c = Neg(b)  y = Concat<axis=0>(c, a)"


def test_above_a_split_it_costs_one_for_each_output() -> None:
    found = starts("r = Relu(t) " + SPLIT)
    assert found["r"] == 2
    assert found["a"] == found["b"] == found["c"] == found["y"] == 1


def test_slices_of_one_tensor_count_together() -> None:
    found = starts(
        "r = Relu(t)  a = Slice(r, zero, one, one)  b = Slice(r, one, two, one)  y = Add(a, b)"
    )
    assert found["r"] == 2
    assert found["a"] == found["b"] == 1


def test_one_slice_costs_one() -> None:
    assert set(starts("r = Relu(t)  y = Slice(r, zero, one, one)").values()) == {1}


def test_it_counts_for_all_operators_above() -> None:
    assert starts("s = Tanh(t)  q = Add(t, s)  r = Relu(q) " + SPLIT)["q"] == 2


def test_the_most_results_count() -> None:
    found = starts(
        "q = Relu(t)  a1, b1 = Split<axis=0>(q, halves)  r = Concat<axis=1>(a1, b1, a1, b1) "
        "s0, s1, s2, s3 = Split<axis=1>(r)  y = Sum(s0, s1, s2, s3)"
    )
    assert found["r"] == found["a1"] == found["q"] == 4


def test_a_transpose_of_the_model_costs_one() -> None:
    # Moving it is the aim.
    found = starts("r = Relu(t)  v = Transpose<perm=[1,0,2]>(r) " + SPLIT.replace("(r,", "(v,"))
    assert found["r"] == found["x"] == 1


@pytest.mark.parametrize("seed", [16, 59])
def test_none_stays_above_the_slices_of_a_scan(seed: int) -> None:
    model = Model.from_proto(get_pass("convert_layout").apply(chains.random_chain(seed)))
    for node in model.main.nodes_of("Transpose"):
        readers = [user.node for user in node.output.users]
        assert sum(reader.op_type == "Slice" for reader in readers) <= 1


def test_a_transpose_moves_all_bytes_or_none() -> None:
    for dims, perm, nbytes in (
        ("2,3,4", "1,0,2", 96),
        ("2,3,4", "2,0,1", 96),
        ("2,3,4", "0,1,2", 0),
        ("2,1,4", "1,0,2", 0),
        ("1,3,1", "2,1,0", 0),
    ):
        text = f"(float[{dims}] x) => (y) {{ t = Transpose<perm=[{perm}]>(x)  y = Relu(t) }}"
        cost = transpose_cost(reach_of(Model.from_proto(parse(text))), LayoutSizes())
        assert (cost.nbytes, cost.transposes) == (nbytes, 1), (dims, perm)


def test_costs_are_added() -> None:
    assert total([]) == FREE == Cost(0, 0, 0)
    assert total([Cost(1, 2, 3), Cost(4, 5, 6), Cost(0, 0)]) == Cost(5, 7, 9)


def test_the_term_of_a_tensor_with_axes_of_size_1() -> None:
    text = """(float[2,1,4] x) => (y, z) { t = Transpose<perm=[2,0,1]>(x)  r = Relu(t)
        y = Transpose<perm=[1,2,0]>(r)  z = Neg(r) }"""
    reach = reach_of(Model.from_proto(parse(text)))
    relu, neg = sorted(reach.operators.values(), key=lambda each: each.node.op_type, reverse=True)
    terms = tensor_costs_of([relu, neg], LayoutSizes())
    x, r = (next(each for each in terms.values() if each.tensor.root.name == name) for name in "xr")
    assert (x.has_ones, x.dims, x.nbytes, x.start) == (True, (2, 1, 4), 32, 400)
    assert (list(x.free_ports), x.operators) == ([(relu, 0)], [relu])
    assert (list(r.free_ports), r.operators) == ([(relu, 1), (neg, 0)], [relu, neg])
    assert [x.is_local_to(each) for each in (relu, neg)] == [True, False]
    assert [r.is_local_to(each) for each in (relu, neg)] == [False, False]
    assert [r.moving(order) for order in ((0, 1, 2), (2, 0, 1), (1, 2, 0))] == [
        (0, 1), (0, 1), (1, 0),
    ]  # fmt: skip
    here = (0, 1, 2)
    time = r.time((0, 1), (1, 0))
    for wanted, expected in (
        ([], FREE),
        ([here], FREE),
        ([(2, 0, 1)], Cost(0, 1, 400)),
        ([(1, 2, 0)], Cost(32, 1, 400 + time)),
        ([(1, 2, 0), (1, 0, 2)], Cost(32, 2, 800 + time)),
        ([here, (2, 0, 1), (1, 2, 0)], Cost(32, 2, 800 + time)),
    ):
        assert r.cost(here, wanted) == expected, wanted
    assert r.most_time == time > 0 == _most_time((2, 4), ())
    assert r.pinned == {(1, 2, 0)}
    r.pin(neg)
    assert (r.producer, r.consumers, r.pinned) == ((relu, 1), {}, {(1, 2, 0), here})
    assert r.is_local_to(relu)
    r.pin(relu)
    assert (r.producer, r.pinned) == (None, {(1, 2, 0), here})


def test_a_tensor_without_axes_of_size_1_has_all_of_them() -> None:
    text = "(float[2,3,4] x) => (y) { t = Transpose<perm=[2,0,1]>(x)  y = Relu(t) }"
    reach = reach_of(Model.from_proto(parse(text)))
    terms = tensor_costs_of(list(reach.operators.values()), LayoutSizes())
    assert [(each.has_ones, each.moving((2, 0, 1))) for each in terms.values()] == [
        (False, (2, 0, 1))
    ] * 2


def test_only_slices_and_splits_start_several() -> None:
    assert set(starts("r = Relu(t)  b = Concat<axis=0>(r, r, r)  y = Neg(b)").values()) == {1}
