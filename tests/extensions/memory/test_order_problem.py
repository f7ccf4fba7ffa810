"""Stretches: what each node must follow, allocates, frees, and may write over."""

import pytest
from hypothesis import given, settings

from tests.extensions.memory.graphs import sized_graphs, stretch
from tiered import Model
from tiered.extensions.memory import memory_plan
from tiered.extensions.memory.order_problem import Buffer, OrderStep, Stretch
from tiered.extensions.memory.order_search import backward_order, forward_order
from tiered.testing import parse


@given(sized_graphs())
@settings(max_examples=60, deadline=None)
def test_every_order_has_the_curve_of_its_plan(text: str) -> None:
    model = Model.from_proto(parse(text))
    whole, nodes = stretch(model), model.main.topological_order()
    for order in (range(len(whole)), forward_order(whole), backward_order(whole)):
        model.main.order_nodes([nodes[at] for at in order])
        assert whole.curve(order) == [step.nbytes for step in memory_plan(model).steps]
        assert whole.permuted(list(order)).curve(range(len(whole))) == whole.curve(order)


def of(text: str) -> Stretch:
    return stretch(Model.from_proto(parse(text)))


DIAMOND = """(float[4] x) => (float[1] y) <int64[1] z = {0}> { a = Concat<axis=0>(x, x)
    b = Relu(a)  c = ReduceMean(a, z)  d = ReduceMean(b, z)  y = Add(c, d) }"""


def test_buffers_have_their_readers_and_sizes() -> None:
    whole = of(DIAMOND)
    assert whole.start == 16
    assert [each.nbytes for each in whole.buffers] == [32, 32, 4, 4, 4]
    assert [each.readers for each in whole.buffers] == [[1, 2], [3], [4], [4], []]
    assert [each.is_needed_later for each in whole.buffers] == [False] * 4 + [True]


def test_steps_have_what_is_before_and_after_them() -> None:
    whole = of(DIAMOND)
    assert [step.before for step in whole.steps] == [[], [0], [0], [1], [2, 3]]
    assert [step.after for step in whole.steps] == [[1, 2], [3], [4], [4], []]
    assert [step.reads for step in whole.steps] == [[], [0], [0], [1], [2, 3]]
    assert [step.makes for step in whole.steps] == [[0], [1], [2], [3], [4]]
    assert [step.allocated for step in whole.steps] == [32, 32, 4, 4, 4]
    assert [step.written_over for step in whole.steps] == [0, 32, 0, 0, 4]
    assert [step.targets for step in whole.steps] == [[], [0], [], [], [2, 3]]


@pytest.mark.parametrize(
    ("order", "curve"),
    [
        # The Relu cannot write over a, which is read later.
        ([0, 1, 2, 3, 4], [48, 80, 84, 56, 28 - 4]),
        # After the mean of a it can.
        ([0, 2, 1, 3, 4], [48, 52, 84 - 32, 56, 28 - 4]),
    ],
)
def test_the_curve_of_an_order(order: list[int], curve: list[int]) -> None:
    whole = of(DIAMOND)
    assert whole.curve(order) == curve
    assert whole.peak(order) == max(curve)


def test_the_bytes_before_each_node() -> None:
    # The output is in the memory of one operand, the other one is free then.
    assert [before for before, _ in of(DIAMOND).run(range(5))] == [16, 48, 80, 52, 24]


def test_a_stretch_without_nodes_has_what_is_alive_before() -> None:
    assert Stretch([], [], 12).peak([]) == 12
    assert len(Stretch([], [], 12)) == 0


def test_views_are_in_the_buffer_of_their_source() -> None:
    whole = of("(float[4] x) => (float[2,2] y) <int64[2] s = {2,2}> {"
               " v = Reshape(x, s) a = Relu(v) b = Reshape(a, s) y = Neg(b) }")  # fmt: skip
    # A view of an input is no buffer, and is not written over.
    assert [each.nbytes for each in whole.buffers] == [16, 16]
    assert [step.makes for step in whole.steps] == [[], [0], [], [1]]
    assert [step.targets for step in whole.steps] == [[], [], [], [0]]
    assert whole.buffers[0].readers == [2, 3]


def test_random_nodes_keep_their_order() -> None:
    whole = of("""(float[4] x) => (float[4] y) {
        a = RandomNormalLike(x)  b = RandomNormalLike(x)  c = Relu(x)
        s = Add(a, b)  y = Add(s, c) }""")
    assert [step.before for step in whole.steps] == [[], [0], [], [0, 1], [2, 3]]
    assert whole.steps[0].after == [1, 3]


def test_an_output_that_nothing_reads_is_alive_at_its_node_alone() -> None:
    whole = of("(float[4] x) => (float[2] y) <int64[1] k = {2}> { y, i = TopK(x, k) }")
    assert whole.steps[0].allocated == 8 + 16
    assert list(whole.run([0])) == [(16, 40)]


def hand() -> Stretch:
    """Return three nodes in a row; the second one also reads the first buffer."""
    steps = [
        OrderStep(after=[1], makes=[0], allocated=4),
        OrderStep(
            before=[0], after=[2], reads=[0], makes=[1], allocated=8, written_over=8, targets=[0]
        ),
        OrderStep(before=[1], reads=[0, 1], makes=[2], allocated=2),
    ]
    return Stretch(steps, [Buffer(4, [1, 2]), Buffer(8, [2]), Buffer(2, [], True)], 1)


def test_a_window_has_local_numbers_and_knows_what_is_needed_later() -> None:
    window = hand().window(1, 2, 5)
    assert (len(window), window.start) == (1, 5)
    (step,) = window.steps
    assert (step.before, step.after) == ([], [])
    assert (step.reads, step.makes, step.targets) == ([0], [1], [0])
    assert window.buffers == [Buffer(4, [0], True), Buffer(8, [], True)]
    whole = hand().window(0, 3, 1)
    assert whole == hand()
    last = hand().window(2, 3, 13)
    assert last.buffers == [Buffer(4, [0], False), Buffer(8, [0], False), Buffer(2, [], True)]


def test_a_permuted_stretch_has_the_numbers_of_the_new_places() -> None:
    swapped = hand().permuted([0, 2, 1])
    assert [step.before for step in swapped.steps] == [[], [2], [0]]
    assert [step.after for step in swapped.steps] == [[2], [], [1]]
    assert [each.readers for each in swapped.buffers] == [[1, 2], [1], []]
    assert swapped.start == 1


def test_absent_outputs_and_views_of_constants() -> None:
    whole = of('(float[4] x, int64[1] k) => (int64[2] i) { "", i = TopK(x, k) }')
    assert [each.nbytes for each in whole.buffers] == [16]
    for view in ("Reshape(w, s)", "Identity(w)"):
        whole = of(f"""(float[4] x) => (float[4] y)
            <float[4] w = {{1,2,3,4}}, int64[1] s = {{4}}> {{
            v = {view} a = Sin(x) y = Add(a, v) }}""")
        assert [step.targets for step in whole.steps] == [[], [], [0, 1]], view
    whole = of("""(float[4] x) => (float[4] y) { a = Sin(x) y, m = Dropout(a) n = Not(m) }""")
    assert [step.targets for step in whole.steps] == [[], [0], [2]]
