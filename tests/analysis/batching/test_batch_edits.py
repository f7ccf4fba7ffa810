"""Each edit leaves the present batch as it is, and lets the model take any other."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from tests.analysis.batching.facts_of import nodes_of
from tests.recorded import assert_values
from tests.small import made_by, named, ops, parsed
from tiered import Model, Node, Value
from tiered.analysis.batching.batch_edits import Rewriting
from tiered.analysis.batching.sample_facts import BatchRows
from tiered.graph.shape_inference.symbolic_dims import multiply, size_of_dim
from tiered.rewriter import Skip
from tiered.rewriter.idioms.windows import windows_of
from tiered.runtime import Session

Array = NDArray[Any]
N = size_of_dim("batch")
MOST = np.iinfo(np.int64).max


def edited(
    text: str,
    edit: Callable[[Rewriting, Node], None],
    *,
    old: int = 2,
    axis: int = 0,
    opset: int = 21,
    fixed: int | None = None,
) -> Model:
    """Return a model after an edit at the node of 'y'; its input 'x' has the batch."""
    model = parsed(text, opset=opset)
    rewriting = Rewriting(model, named(model, "x"), axis, old)
    edit(rewriting, made_by(model, "y"))
    if fixed is not None:
        rewriting.fix(fixed)
    model.check_view(types=True)
    return model


def computed(model: Model, **feeds: Array) -> Array:
    proto = model.to_proto()
    onnx.checker.check_model(proto)
    found: Array = Session(proto).run(feeds)["y"]
    return found


def floats(*shape: int) -> Array:
    return np.arange(1, np.prod(shape) + 1, dtype=np.float32).reshape(shape)


def value_of(node: Node, slot: int) -> Value:
    value = node.inputs[slot]
    assert value is not None
    return value


# --- sizes ----------------------------------------------------------------------------------------

VECTOR = "(float[N,3] x, int64[4] p) => (int64[K] y) { y = Identity(p) }"


def vector(pieces: list[Any], fixed: int | None = None) -> Model:
    def edit(to: Rewriting, node: Node) -> None:
        made = to.vector(node.owner, pieces, named(node.owner, "p"))
        to.set_input(node, 0, made)

    return edited(VECTOR, edit, fixed=fixed)


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([4, N, 7, 8], [4, 5, 7, 8]),
        ([multiply(3, N)], [15]),
        ([N], [5]),
        ([2, 3], [2, 3]),
        ([None, 2, N, None], [11, 2, 5, 14]),
    ],
)
def test_a_vector_has_sizes_of_the_batch_and_present_elements(
    pieces: list[Any], expected: list[int]
) -> None:
    present = np.array([11, 12, 13, 14])
    assert computed(vector(pieces), x=floats(5, 3), p=present).tolist() == expected


def test_numbers_that_follow_one_another_are_one_constant() -> None:
    model = vector([1, 2, N, 3, 4])
    assert sorted(ops(model)) == ["Concat", "Gather", "Identity", "Shape"]
    assert len(made_by(model, made_by(model, "y").inputs[0].name).inputs) == 3  # type: ignore[union-attr]  # it has one


@pytest.mark.parametrize(
    ("pieces", "expected"), [([4, multiply(2, N)], [4, 12]), ([N], [6]), ([2, 3], [2, 3])]
)
def test_a_fixed_batch_makes_constants(pieces: list[Any], expected: list[int]) -> None:
    model = vector(pieces, 6)
    constant = value_of(made_by(model, "y"), 0).const
    assert constant is not None
    assert (constant.tolist(), constant.dtype) == (expected, np.int64)


def test_a_vector_with_a_present_element_is_no_constant() -> None:
    model = vector([None, N], 6)
    assert value_of(made_by(model, "y"), 0).const is None
    assert computed(model, x=floats(6, 3), p=np.arange(4)).tolist() == [0, 6]


def test_a_target_is_an_operand_or_an_attribute_before_opset_5() -> None:
    text = "(float[N,6] x) => (float[A,B] y) <int64[2] s = {2,6}> { y = Reshape(x, s) }"
    model = edited(text, lambda to, node: to.set_target(node, [multiply(2, N), 3]))
    assert computed(model, x=floats(5, 6)).shape == (10, 3)
    assert model.main.value("s") is None
    text = "(float[2,6] x) => (float[2,6] y) { y = Reshape<shape=[2,6]>(x) }"
    model = edited(text, lambda to, node: to.set_target(node, [-1, 6]), opset=4)
    assert list(made_by(model, "y").attr("shape")) == [-1, 6]


# --- operands -------------------------------------------------------------------------------------


def test_what_no_node_reads_any_more_is_removed() -> None:
    text = """(float[2,3] x) => (float[2,3] y) <float[3] k = {1,2,3}> {
        m = Neg(k)  y = Add(x, m) }"""
    model = edited(text, lambda to, node: to.set_input(node, 1, named(node.owner, "x")))
    assert ops(model) == ["Add"]
    assert model.main.value("k") is None


def test_an_operand_that_was_absent_is_set() -> None:
    text = "(float[N,3] x, float m) => (float[N,3] y) { y = Clip(x, , m) }"
    model = edited(text, lambda to, node: to.set_input(node, 1, named(node.owner, "m")))
    assert computed(model, x=floats(1, 3), m=np.array(2, np.float32)).tolist() == [[2, 2, 2]]


@pytest.mark.parametrize(
    ("rows", "size", "target", "made"),
    [
        (BatchRows(1), 5, "1,2,3", BatchRows(0)),
        (BatchRows(1), 5, "2,1,3", BatchRows(1)),
        (BatchRows(1), 5, "2,3,1", BatchRows(2)),
    ],
)
def test_a_reshape_moves_the_samples_of_a_batch_of_one(
    rows: BatchRows, size: int, target: str, made: BatchRows
) -> None:
    text = f"(float[6,N] x) => (float[A,B,C] y) <int64[3] s = {{{target}}}> {{ y = Reshape(x, s) }}"
    model = edited(text, lambda to, node: to.move(node, rows, made), old=1, axis=1)
    x = floats(6, size)
    found = computed(model, x=x)
    expected = np.stack([x[:, at].reshape(2, 3) for at in range(size)], made.axis)
    np.testing.assert_array_equal(found, expected)


SLICE = "(float[N,3] x, int64[1] e) => (float[A,B] y) <CONSTANTS> { NODES }"


@pytest.mark.parametrize(
    ("constants", "nodes", "expected"),
    [
        ("int64[2] s = {0,1}, int64[2] f = {2,3}", "y = Slice(x, s, f)", [MOST, 3]),
        ("int32[2] s = {0,1}, int32[2] f = {2,3}", "y = Slice(x, s, f)",
         [np.iinfo(np.int32).max, 3]),
    ],
)  # fmt: skip
def test_a_slice_ends_with_the_last_element(
    constants: str, nodes: str, expected: list[int]
) -> None:
    text = SLICE.replace("CONSTANTS", constants).replace("NODES", nodes)
    model = edited(text, lambda to, node: to.set_end(node, 0))
    ends = value_of(made_by(model, "y"), 2).const
    assert ends is not None
    assert ends.tolist() == expected
    assert ends.dtype == (np.int32 if "int32" in constants else np.int64)
    x = floats(5, 3)
    np.testing.assert_array_equal(computed(model, x=x, e=np.array([1])), x[:, 1:])


def test_a_slice_with_computed_ends_keeps_the_others() -> None:
    text = SLICE.replace("CONSTANTS", "int64[2] s = {0,0}, int64[1] two = {2}")
    text = text.replace("NODES", "f = Concat<axis=0>(two, e)  y = Slice(x, s, f)")
    model = edited(text, lambda to, node: to.set_end(node, 0))
    x = floats(5, 3)
    np.testing.assert_array_equal(computed(model, x=x, e=np.array([1])), x[:, :1])


def test_ends_were_an_attribute() -> None:
    text = "(float[N,3] x) => (float[A,B] y) { y = Slice<starts=[0,1], ends=[2,3]>(x) }"
    model = edited(text, lambda to, node: to.set_end(node, 0), opset=9)
    assert list(made_by(model, "y").attr("ends")) == [MOST, 3]


# --- values that are equal for each sample --------------------------------------------------------

SHARED = """(float[N,3] x, float[C] c) => (float[D] y)
    <float[2,3] k = {1,2,3,1,2,3}, float[12] flat = {1,2,1,2,3,4,3,4,5,6,5,6}> { y = Neg(OPERAND) }"""
FLAT = np.array([1, 2, 1, 2, 3, 4, 3, 4, 5, 6, 5, 6], np.float32)
"""Three groups of two samples with two neighbours each."""


def shared(operand: str, shape: str) -> str:
    return SHARED.replace("OPERAND", operand).replace("[C]", f"[{shape}]")


@pytest.mark.parametrize(
    ("operand", "shape", "rows", "expected"),
    [
        ("k", "1", BatchRows(0), [[1, 2, 3]]),
        ("flat", "1", BatchRows(0, 3, 2), [1, 2, 3, 4, 5, 6]),
        ("c", "2,3", BatchRows(0), [[1, 2, 3]]),
        ("c", "12", BatchRows(0, 3, 2), [1, 2, 3, 4, 5, 6]),
    ],
)
def test_the_first_sample_of_equal_ones(
    operand: str, shape: str, rows: BatchRows, expected: list[Any]
) -> None:
    def edit(to: Rewriting, node: Node) -> None:
        to.set_input(node, 0, to.first(node.owner, value_of(node, 0), rows))

    model = edited(shared(operand, shape), edit)
    c = FLAT if shape == "12" else floats(1, 3).repeat(2, 0)
    if shape == "1":
        c = floats(1)
    assert (-computed(model, x=floats(5, 3), c=c)).tolist() == expected


def test_the_only_sample_is_the_value_itself() -> None:
    model = parsed(shared("c", "1,3"))
    to, value = Rewriting(model, named(model, "x"), 0, 1), named(model, "c")
    assert to.first(model.main, value, BatchRows(0)) is value


@pytest.mark.parametrize(
    ("operand", "shape", "rows"),
    [("k", "1", BatchRows(0)), ("c", "2,3", BatchRows(0)), ("flat", "1", BatchRows(0, 3, 2)),
     ("c", "12", BatchRows(0, 3, 2))],
)  # fmt: skip
def test_a_value_is_repeated_for_each_sample(operand: str, shape: str, rows: BatchRows) -> None:
    def edit(to: Rewriting, node: Node) -> None:
        value = value_of(node, 0)
        made = to.spread(node.owner, value, rows)
        assert to.spread(node.owner, value, rows) is made
        to.set_input(node, 0, made)

    model = edited(shared(operand, shape), edit)
    flat = rows.inner == 2
    c = FLAT if shape == "12" else floats(1, 3).repeat(2, 0)
    if shape == "1":
        c = floats(1)
    expected = (
        FLAT.reshape(3, 2, 2)[:, :1].repeat(5, 1).ravel() if flat else floats(1, 3).repeat(5, 0)
    )
    np.testing.assert_array_equal(-computed(model, x=floats(5, 3), c=c), expected)


def test_what_was_removed_since_is_repeated_again() -> None:
    model = parsed(shared("c", "2,3"))
    to = Rewriting(model, named(model, "x"), 0, 2)
    first = to.spread(model.main, named(model, "c"), BatchRows(0))
    assert first.producer is not None
    model.main.prune([first.producer])
    again = to.spread(model.main, named(model, "c"), BatchRows(0))
    assert again is not first
    assert again.graph is model.main


def test_an_output_of_a_body_is_repeated() -> None:
    text = """(float[N,3] x, bool c) => (float[A,B] y) <float[1,3] k = {1,2,3}> {
        y = If(c) <then_branch = t () => (float[A,B] p) { p = Identity(x) },
                   else_branch = e () => (float[A,B] q) { q = Identity(k) }> }"""
    model = edited(text, lambda to, node: to.spread_output(node.bodies[0]
        if node.bodies[0].name == "e" else node.bodies[1], 0, BatchRows(0)), old=1)  # fmt: skip
    found = computed(model, x=floats(5, 3), c=np.array(False))
    np.testing.assert_array_equal(found, floats(1, 3).repeat(5, 0))


# --- what is written ------------------------------------------------------------------------------

WRITTEN = {
    "vector": VECTOR,
    "shared": SHARED,
    "moved": "(float[6,N] x) => (float[A,B,C] y) <int64[3] s = {1,2,3}> { y = Reshape(x, s) }",
    "cut": """(float[N,3] x, int64[1] e) => (float[A,B] y) <int64[2] s = {0,1},
        int64[2] f = {2,3}> { y = Slice(x, s, f) }""",
    "image": """(float[N,2,4] x, float[K,2,2] w, float[M] b) => (float[A,B,C] y) {
        y = Conv(x, w, b) }""",
    "lifted": """(float[N,4,3] x) => (float[A,B] y) <int64[2] s = {-1,3}, float[3] v = {1,2,3},
        float[8,1] m = {1,2,3,4,1,2,3,4}, float[1,1] o = {5}> { a = Reshape(x, s)  y = Mul(a, m) }""",
}


def write(
    name: str,
    edit: Callable[[Rewriting, Node], None],
    *changes: tuple[str, str],
    old: int = 2,
    axis: int = 0,
) -> None:
    """Print the nodes of one of the models with some changes of its text after an edit."""
    text = WRITTEN[name]
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    print(nodes_of(edited(text, edit, old=old, axis=axis)))


def repeat(to: Rewriting, node: Node, rows: BatchRows, *, once: bool) -> None:
    """Let a node read an operand for the first sample, or for each of them."""
    value = value_of(node, 0)
    to.set_input(node, 0, (to.first if once else to.spread)(node.owner, value, rows))


def convolve(to: Rewriting, node: Node) -> None:
    text = WRITTEN["image"]
    for name, size in zip("NKM", "133", strict=True):
        text = text.replace(f"[{name}", f"[{size}")
    static = made_by(parsed(text), "y")
    windows = windows_of(static, value_of(static, 0), [2])
    assert not isinstance(windows, Skip)
    to.convolve(node, windows, 3, 1, BatchRows(0))


def test_what_the_edits_write() -> None:
    names = {"BatchRows": BatchRows, "N": N, "convolve": convolve, "multiply": multiply}
    assert_values(__file__, {**names, "repeat": repeat, "write": write, "value_of": value_of})


# --- indices --------------------------------------------------------------------------------------


@pytest.mark.parametrize("fixed", [None, 4])
def test_a_constant_index_takes_the_rows_of_each_sample(fixed: int | None) -> None:
    text = """(float[N,3] x) => (float[A,B] y) <int64[1] flat = {-1}, int64[2,2] i = {2,0,5,3}> {
        d = Reshape(x, flat)  y = Gather(d, i) }"""
    model = edited(
        text,
        lambda to, node: to.number(node, np.array([[2, 0]]), 0, np.array(3)),
        fixed=fixed,
    )
    x = floats(4, 3)
    np.testing.assert_array_equal(computed(model, x=x), x[:, [2, 0]])
    if fixed:
        assert value_of(made_by(model, "y"), 1).const is not None


@pytest.mark.parametrize(
    ("data", "rows", "index", "expected"),
    [
        # several rows a sample
        (BatchRows(0, 1, 3), BatchRows(0), "int64[1,2] i", lambda x: x[:, [2, 0]]),
        (BatchRows(0, 1, 3), BatchRows(0), "int32[1,2] i", lambda x: x[:, [2, 0]]),
        (BatchRows(0, 1, 3), BatchRows(1), "int64[2,1] i", lambda x: x[:, [2, 0]].T),
    ],
)
def test_a_computed_index_takes_the_rows_of_each_sample(
    data: BatchRows, rows: BatchRows, index: str, expected: Callable[[Array], Array]
) -> None:
    text = f"""(float[N,3] x, {index}) => (float[A,B] y) <int64[1] flat = {{-1}}> {{
        d = Reshape(x, flat)  y = Gather(d, i) }}"""
    model = edited(text, lambda to, node: to.number_computed(node, data, rows, None, None), old=1)
    x = floats(4, 3)
    shape = (1, 2) if rows.axis == 0 else (2, 1)
    dtype = np.int32 if "int32" in index else np.int64
    found = computed(model, x=x, i=np.array([2, 0], dtype).reshape(shape))
    np.testing.assert_array_equal(found, expected(x))


@pytest.mark.parametrize("row", [0, -1])
def test_the_only_row_of_a_sample_becomes_its_own(row: int) -> None:
    text = "(float[N,3] x, int64[1] i) => (float[A,B] y) { y = Gather(x, i) }"
    model = edited(
        text,
        lambda to, node: to.number_computed(node, BatchRows(0), BatchRows(0), None, None),
        old=1,
    )
    x = floats(4, 3)
    np.testing.assert_array_equal(computed(model, x=x, i=np.array([row])), x)


def test_one_column_of_an_index_counts_the_samples() -> None:
    text = "(float[3,N] x, int64[1,2] i) => (float[A] y) { y = GatherND(x, i) }"
    model = edited(
        text,
        lambda to, node: to.number_computed(node, BatchRows(1), BatchRows(0), 1, 2),
        old=1,
        axis=1,
    )
    x = floats(3, 4)
    np.testing.assert_array_equal(computed(model, x=x, i=np.array([[2, -1]])), x[2])


def test_several_places_of_a_sample_have_its_number() -> None:
    text = "(float[N,3] x, int64[1,2,1] i) => (float[A,B] y) { y = GatherND(d, i)  d = Reshape(x, f)  f = Constant<value_ints=[-1]>() }"
    model = edited(
        text,
        lambda to, node: to.number_computed(node, BatchRows(0, 1, 3), BatchRows(0, 1, 1), 0, 1),
        old=1,
    )
    x = floats(4, 3)
    found = computed(model, x=x, i=np.array([[[2], [0]]]))
    np.testing.assert_array_equal(found, x[:, [2, 0]])


@pytest.mark.parametrize(("inner", "expected"), [(1, [0, 1, 2, 3]), (2, [0, 0, 1, 1, 2, 2, 3, 3])])
def test_rows_have_the_number_of_their_sample(inner: int, expected: list[int]) -> None:
    text = "(float[N,3] x, int64[K] i) => (int64[A] y) { y = Identity(i) }"
    model = edited(text, lambda to, node: to.number_rows(node, 0, BatchRows(0, 1, inner)))
    assert computed(model, x=floats(4, 3), i=np.array([0])).tolist() == expected


@pytest.mark.parametrize(("dtype", "name"), [(np.int64, "int64"), (np.int32, "int32")])
def test_a_constant_counts_the_samples_of_any_batch(dtype: Any, name: str) -> None:
    text = f"(float[N,3] x) => ({name}[A,B] y) <{name}[2,1] k = {{5,8}}> {{ y = Identity(k) }}"
    start: Array = np.array([[5]], dtype)
    model = edited(text, lambda to, node: to.count_from(node, 0, 0, 3, start))
    found = computed(model, x=floats(4, 3))
    assert found.dtype == dtype
    assert found.tolist() == [[5], [8], [11], [14]]


def test_an_operand_gets_a_number_for_each_sample() -> None:
    text = "(float[N,3] x, int64[N,2] i) => (int64[A,B] y) { y = Identity(i) }"
    model = edited(text, lambda to, node: to.shift(node, 0, 10))
    i = np.arange(8).reshape(4, 2)
    found = computed(model, x=floats(4, 3), i=i)
    np.testing.assert_array_equal(found, i + np.array([[0], [10], [20], [30]]))


def test_an_output_gets_a_number_for_each_sample() -> None:
    text = """(float[N,1,4] x) => (float[A,B,C] v, int64[A,B,C] y)
        { v, y = MaxPool<kernel_shape = [2], strides = [2]>(x) }"""
    model = edited(text, lambda to, node: to.shift_output(node, 1, -4), old=1)
    x = np.array([[[1, 2, 4, 3]], [[2, 1, 3, 4]]], np.float32)
    assert computed(model, x=x).tolist() == [[[1, 2]], [[0, 3]]]
    (pool,) = model.main.nodes_of("MaxPool")
    assert pool.output.name == "v"


def test_an_output_gets_a_number_beside_one_that_is_absent() -> None:
    text = """(float[N,1,4] x) => (int64[A,B,C] y)
        { , y = MaxPool<kernel_shape = [2], strides = [2]>(x) }"""
    model = edited(text, lambda to, node: to.shift_output(node, 1, -4), old=1)
    x = np.array([[[1, 2, 4, 3]], [[2, 1, 3, 4]]], np.float32)
    assert computed(model, x=x).tolist() == [[[1, 2]], [[0, 3]]]


def test_a_place_for_each_sample_is_taken_along_the_second_axis() -> None:
    text = "(float[N,3,2] x, int64[N] i) => (float[A,B,C] y) { y = Gather<axis=1>(x, i) }"
    model = edited(text, lambda to, node: to.take_places(node), old=1)
    x, i = floats(4, 3, 2), np.array([2, 0, 1, -1])
    np.testing.assert_array_equal(computed(model, x=x, i=i), x[np.arange(4), i][:, None])


# --- operators ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("image", "axis"), [("float[N,2,4] x", 0), ("float[1,M,4] x", 1)])
def test_a_convolution_has_kernels_of_each_sample(image: str, axis: int) -> None:
    """Of three kernels of each sample, over two channels."""
    text = "({}, float[{},2,2] w) => (float[A,B,C] y) {{ y = Conv(x, w) }}"
    static = made_by(parsed(text.format("float[1,2,4] x", 3)), "y")
    windows = windows_of(static, value_of(static, 0), [2])
    assert not isinstance(windows, Skip)

    def edit(to: Rewriting, node: Node) -> None:
        to.convolve(node, windows, 3, 1, BatchRows(axis, 1, 2 if axis else 1))

    model = edited(text.format(image, "K"), edit, old=1, axis=axis)
    x, w = floats(4, 2, 4), floats(12, 2, 2)
    expected = np.stack(
        [
            [sum(x[n, c, at + t] * w[3 * n + k, c, t] for c in range(2) for t in range(2))
             for at in range(3)]
            for n in range(4) for k in range(3)
        ]
    ).reshape(4, 3, 3)  # fmt: skip
    found = computed(model, x=x if not axis else x.reshape(1, 8, 4), w=w)
    assert found.shape == ((4, 3, 3) if not axis else (1, 12, 3))
    np.testing.assert_allclose(found.reshape(4, 3, 3), expected)


def test_absent_operands_stay_so_with_three_axes() -> None:
    text = """(float[N,4,3] x, float m) => (float[A,B] y) <int64[2] s = {-1,3}> {
        a = Reshape(x, s)  y = Clip(a, , m) }"""
    model = edited(text, lambda to, node: to.lift(node, BatchRows(0, 1, 4), (0,)))
    x = floats(5, 4, 3)
    found = computed(model, x=x, m=np.array(9, np.float32))
    np.testing.assert_array_equal(found, x.clip(None, 9).reshape(20, 3))
    (clip,) = model.main.nodes_of("Clip")
    assert clip.inputs[1] is None


@pytest.mark.parametrize("mask", ["m", "o", "v"])
def test_an_operator_is_computed_with_three_axes(mask: str) -> None:
    """Two samples of four windows, which are one axis; a number for each window, or one for all."""
    text = f"""(float[N,4,3] x) => (float[A,B] y) <int64[2] s = {{-1,3}}, float[3] v = {{1,2,3}},
        float[8,1] m = {{1,2,3,4,1,2,3,4}}, float[1,1] o = {{5}}> {{
        a = Reshape(x, s)  y = Mul(a, {mask}) }}"""
    model = edited(text, lambda to, node: to.lift(node, BatchRows(0, 1, 4), (0,)))
    x = floats(5, 4, 3)
    factor: Array = {
        "m": floats(1, 4, 1), "o": np.array(5, np.float32), "v": floats(3),
    }[mask]  # fmt: skip
    np.testing.assert_array_equal(computed(model, x=x), (x * factor).reshape(20, 3))
