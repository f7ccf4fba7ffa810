"""Operators that move elements: each element of a result is the one that the standard names."""

from typing import Any

import numpy as np
import onnx
import pytest

from tests.certify.call import FLOAT, INT64, call, free, known, only
from tiered.certify.domains.terms import Array, constants
from tiered.certify.evaluation.call import NoRule
from tiered.certify.evaluation.forms import Dequantized
from tiered.certify.evaluation.values import CheckedTensor, Misfit, Unproved
from tiered.certify.rules.moves import MOVES, widths_of

BOOL, UINT8 = int(onnx.TensorProto.BOOL), int(onnx.TensorProto.UINT8)
X = free("x", 2, 3, 4)
SQUARE = free("square", 3, 3)


def ran(op: str, *inputs: CheckedTensor | None, **held: Any) -> CheckedTensor:
    return only(MOVES[op](call(op, *inputs, **held)))


def are_same(made: CheckedTensor, expected: Array) -> bool:
    """Return whether a tensor has such terms, and the numbers where its operand has some."""
    assert made.shape == expected.shape
    return bool((made.terms == expected).all())


def ints(*numbers: int) -> CheckedTensor:
    return known(numbers)


def dequantized(name: str, *shape: int, scale: float = 0.5) -> CheckedTensor:
    x = free(name, *shape)
    integers = free(f"{name} integers", *shape, dtype=UINT8)
    x.form = Dequantized(integers, np.array([scale], np.float32), np.array([3], np.uint8), 0)
    return x


# --- views ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "operands", "held", "shape"),
    [
        ("Reshape", [ints(4, 6)], {}, (4, 6)),
        ("Reshape", [ints(-1, 6)], {}, (4, 6)),
        ("Reshape", [ints(0, -1)], {}, (2, 12)),
        ("Reshape", [ints(0, 0, 0, 1)], {}, (2, 3, 4, 1)),
        ("Reshape", [ints(24)], {"allowzero": 1}, (24,)),
        ("Flatten", [], {}, (2, 12)),
        ("Flatten", [], {"axis": 0}, (1, 24)),
        ("Flatten", [], {"axis": 3}, (24, 1)),
        ("Flatten", [], {"axis": -1}, (6, 4)),
        ("Unsqueeze", [ints(0, -1)], {}, (1, 2, 3, 4, 1)),
        ("Unsqueeze", [ints(2)], {}, (2, 3, 1, 4)),
        ("Unsqueeze", [], {"axes": [1], "opset": 11}, (2, 1, 3, 4)),
        ("Unsqueeze", [known(np.zeros(0, np.int64))], {}, (2, 3, 4)),
        ("Unsqueeze", [], {"opset": 11}, (2, 3, 4)),
        ("Identity", [], {}, (2, 3, 4)),
    ],
)
def test_views_keep_the_order(
    op: str, operands: list[CheckedTensor], held: dict[str, Any], shape: tuple[int, ...]
) -> None:
    made = ran(op, X, *operands, **held)
    assert are_same(made, X.terms.reshape(shape))
    assert made.dtype == FLOAT


def test_a_squeeze_drops_named_axes_or_all_of_size_one() -> None:
    x = free("x", 1, 2, 1, 3)
    assert are_same(ran("Squeeze", x), x.terms.reshape(2, 3))
    assert are_same(ran("Squeeze", x, ints(-2)), x.terms.reshape(1, 2, 3))
    assert are_same(ran("Squeeze", x, axes=[0, 2], opset=11), x.terms.reshape(2, 3))
    with pytest.raises(Unproved, match=r"Squeeze of axes \[1\] of \[1, 2, 1, 3\]"):
        ran("Squeeze", x, ints(1))


def test_a_shape_with_a_zero_is_a_copy_or_empty() -> None:
    empty = free("empty", 0, 3)
    assert ran("Reshape", empty, ints(3, 0), allowzero=1).shape == (3, 0)
    assert ran("Reshape", empty, ints(0, 3)).shape == (0, 3)
    with pytest.raises(Unproved, match="a 0 of Reshape copies a dim that is not there"):
        ran("Reshape", X, ints(2, 3, 4, 0))


@pytest.mark.parametrize(
    ("wanted", "repairs"),
    [
        ([5, 5], []),
        ([-1, 5], [(5, 24)]),
        ([-1, 48], [(2, 4), (3, 6), (4, 8), (48, 24)]),
        ([12], [(2, 1), (4, 2), (12, 24)]),
        ([1, 1], [(1, 24), (1, 24)]),
        ([-1, -1], None),
        ([-2, -12], None),
    ],
)
def test_a_shape_of_another_size_is_refused_with_the_sizes_that_would_fit(
    wanted: list[int], repairs: list[tuple[int, int]] | None
) -> None:
    with pytest.raises(Misfit) as refused:
        ran("Reshape", X, ints(*wanted))
    assert str(refused.value) == f"[2, 3, 4] is reshaped to {wanted}"
    if repairs is not None:
        fitting = [pair for pair in refused.value.repairs if pair[0] != pair[1]]
        assert fitting == repairs


def test_zeros_are_no_divisors_of_shapes() -> None:
    with pytest.raises(Misfit):
        ran("Reshape", free("empty", 0, 3), ints(-1, 0), allowzero=1)
    with pytest.raises(Misfit) as refused:
        ran("Reshape", free("empty", 0, 3), ints(2))
    assert refused.value.repairs == [(2, 0)]


@pytest.mark.parametrize("axes", [[0, 0], [1, -4]])
def test_an_axis_is_added_once(axes: list[int]) -> None:
    with pytest.raises(Unproved, match="Unsqueeze of axes"):
        ran("Unsqueeze", X, ints(*axes))


def test_a_transpose_turns_axes() -> None:
    assert are_same(ran("Transpose", X, perm=[2, 0, 1]), X.terms.transpose(2, 0, 1))
    assert are_same(ran("Transpose", X), X.terms.T)
    with pytest.raises(Unproved, match=r"Transpose by \[0, 0, 1\] of rank 3"):
        ran("Transpose", X, perm=[0, 0, 1])


# --- Concat and Split -----------------------------------------------------------------------------


def test_parts_are_concatenated_along_an_axis() -> None:
    z = free("z", 2, 5, 4)
    for axis in (1, -2):
        made = ran("Concat", X, z, X, axis=axis)
        assert are_same(made, np.concatenate([X.terms, z.terms, X.terms], 1))
    assert are_same(ran("Concat", X, z, opset=3), ran("Concat", X, z, axis=1).terms)
    numbers = known([[1, 2]], np.float32)
    made = ran("Concat", numbers, numbers, axis=0)
    assert made.known is not None
    assert (made.known.tolist(), made.dtype) == ([[1, 2], [1, 2]], FLOAT)
    assert ran("Concat", numbers, free("row", 1, 2), axis=0).known is None


def test_parts_that_do_not_fit_name_the_sizes_to_repair() -> None:
    with pytest.raises(Misfit, match="Concat of tensors that do not fit") as refused:
        ran("Concat", X, free("z", 2, 3, 5), axis=1)
    assert set(refused.value.repairs) == {(4, 5), (5, 4)}


def test_a_concat_is_as_exact_as_all_of_its_parts() -> None:
    half = int(onnx.TensorProto.FLOAT16)

    def part(exact: int | None) -> CheckedTensor:
        return CheckedTensor(FLOAT, (2,), lambda: free("p", 2).terms, exact=exact)

    assert ran("Concat", part(half), part(half), axis=0).exact == half
    assert ran("Concat", part(half), part(None), axis=0).exact == FLOAT


def test_dequantised_parts_of_one_scale_stay_dequantised() -> None:
    a, b = dequantized("a", 2), dequantized("b", 3)
    made = ran("Concat", a, b, axis=0)
    assert isinstance(made.form, Dequantized)
    assert isinstance(a.form, Dequantized)
    assert isinstance(b.form, Dequantized)
    integers = [a.form.integers.terms, b.form.integers.terms]
    assert are_same(made.form.integers, np.concatenate(integers))
    assert ran("Concat", a, dequantized("b", 3, scale=0.25), axis=0).form is None
    assert ran("Concat", a, free("z", 2), axis=0).form is None


@pytest.mark.parametrize(
    ("outputs", "operands", "held", "ends"),
    [
        ("ab", [ints(1, 3)], {"axis": 2}, [(0, 1), (1, 4)]),
        ("abc", [ints(1, 0, 3)], {"axis": -1}, [(0, 1), (1, 1), (1, 4)]),
        ("ab", [], {"axis": 2, "num_outputs": 2}, [(0, 2), (2, 4)]),
        ("abc", [], {"axis": 2, "num_outputs": 3}, [(0, 2), (2, 4), (4, 4)]),
        ("ab", [], {"axis": 2, "split": [3, 1], "opset": 11}, [(0, 3), (3, 4)]),
    ],
)
def test_a_tensor_is_split_along_an_axis(
    outputs: str, operands: list[CheckedTensor], held: dict[str, Any], ends: list[tuple[int, int]]
) -> None:
    made = MOVES["Split"](call("Split", X, *operands, outputs=tuple(outputs), **held))
    assert len(made) == len(ends)
    for part, (start, end) in zip(made, ends, strict=True):
        assert part is not None
        assert are_same(part, X.terms[:, :, start:end])


def test_a_split_without_sizes_is_along_the_first_axis_and_its_last_part_is_shorter() -> None:
    x = free("x", 5)
    parts = MOVES["Split"](call("Split", x, outputs=("a", "b"), num_outputs=2))
    assert [part is not None and part.shape for part in parts] == [(3,), (2,)]


@pytest.mark.parametrize("sizes", [(1, 2), (4,), (1, 1, 2)])
def test_sizes_that_do_not_fit_are_no_split(sizes: tuple[int, ...]) -> None:
    with pytest.raises(Unproved, match="Split into sizes that do not fit"):
        MOVES["Split"](call("Split", X, ints(*sizes), outputs=("a", "b"), axis=2))


# --- Slice ----------------------------------------------------------------------------------------

FAR = 2**63 - 1


@pytest.mark.parametrize(
    ("start", "end", "step", "expected"),
    [
        (1, 3, 1, [1, 2]), (0, FAR, 1, [0, 1, 2, 3]), (-2, FAR, 1, [2, 3]), (0, -1, 1, [0, 1, 2]),
        (-9, 2, 1, [0, 1]), (2, 1, 1, []), (5, 9, 1, []), (0, -9, 1, []), (0, 4, 3, [0, 3]),
        (3, -9, -1, [3, 2, 1, 0]), (FAR, -FAR, -1, [3, 2, 1, 0]), (-1, 0, -1, [3, 2, 1]),
        (-1, -5, -1, [3, 2, 1, 0]), (-1, -4, -2, [3, 1]), (0, 2, -1, []), (-9, -9, -1, [0]),
        (2, 3, -1, []), (3, FAR, -1, []), (-1, 4, -1, []),
    ],
)  # fmt: skip
def test_a_slice_reads_what_lies_between_its_bounds(
    start: int, end: int, step: int, expected: list[int]
) -> None:
    made = ran("Slice", X, ints(start), ints(end), ints(-1), ints(step))
    assert are_same(made, X.terms[:, :, expected])


def test_a_slice_of_first_axes_with_steps_of_one() -> None:
    made = ran("Slice", X, ints(1, 0), ints(2, 2))
    assert are_same(made, X.terms[1:2, :2])
    older = ran("Slice", X, starts=[1], ends=[3], axes=[2], opset=9)
    assert are_same(older, X.terms[:, :, 1:3])
    assert ran("Slice", free("none", 0), ints(5), ints(-9), ints(0), ints(-1)).shape == (0,)
    with pytest.raises(ValueError, match="step cannot be zero"):
        ran("Slice", X, ints(0), ints(1), ints(0), ints(0))


# --- Gather and Scatter ---------------------------------------------------------------------------


def test_known_indices_take_elements() -> None:
    made = ran("Gather", X, known([[0, -1], [2, 1]]), axis=1)
    assert are_same(made, X.terms[:, [[0, 2], [2, 1]]])
    assert are_same(ran("Gather", X, known(1)), X.terms[1])
    assert are_same(ran("Gather", X, known(-3), axis=-2), X.terms[:, 0])
    assert ran("Gather", X, known(np.zeros((0, 5), np.int64)), axis=1).shape == (2, 0, 5, 4)


@pytest.mark.parametrize("index", [3, -4])
@pytest.mark.parametrize("op", ["Gather", "GatherElements", "GatherND", "ScatterND"])
def test_indices_out_of_range_have_no_rule(op: str, index: int) -> None:
    shape = {"Gather": (), "GatherElements": (1, 1)}.get(op, (1, 1))
    operands = [SQUARE, known(np.full(shape, index))]
    operands += [free("u", 1, 3)] if op == "ScatterND" else []
    with pytest.raises(NoRule):
        ran(op, *operands)


def test_an_unknown_index_depends_on_its_lane_and_its_number_alone() -> None:
    index = free("index", 2, dtype=INT64)
    made = ran("Gather", X, index, axis=1)
    assert (made.shape, made.dtype) == ((2, 2, 4), FLOAT)
    assert len(np.unique(made.terms)) == made.size
    turned = CheckedTensor(FLOAT, (4, 3, 2), lambda: X.terms.transpose(2, 1, 0))
    assert are_same(ran("Gather", turned, index, axis=1), made.terms.transpose(2, 1, 0))
    twice = CheckedTensor(INT64, (2,), lambda: index.terms[[1, 1]])
    assert are_same(ran("Gather", X, twice, axis=1), made.terms[:, [1, 1]])
    swapped = CheckedTensor(FLOAT, (2, 3, 4), lambda: X.terms[:, [1, 0, 2]])
    assert not (ran("Gather", swapped, index, axis=1).terms == made.terms).any()


def test_elements_are_gathered_along_an_axis() -> None:
    at = np.array([[0, -1], [2, 1]])
    made = ran("GatherElements", SQUARE, known(at), axis=-1)
    assert are_same(made, np.take_along_axis(SQUARE.terms[:2], at % 3, 1))
    assert are_same(
        ran("GatherElements", SQUARE, known([[2, 1]])), SQUARE.terms[[[2, 1]], [[0, 1]]]
    )


def test_slices_are_gathered_by_tuples_of_indices() -> None:
    made = ran("GatherND", X, known([[0, 2], [1, -1]]))
    assert are_same(made, X.terms[[0, 1], [2, 2]])
    made = ran("GatherND", X, known([[0, 2], [1, -1], [0, 0]]))
    assert are_same(made, X.terms[[0, 1, 0], [2, 2, 0]])
    made = ran("GatherND", X, known([[[1]], [[-3]]]), batch_dims=1)
    assert are_same(made, np.stack([X.terms[0, 1], X.terms[1, 0]])[:, None])


def test_updates_are_written_over_what_was_there() -> None:
    updates = free("updates", 2, 3)
    made = ran("ScatterND", SQUARE, known([[2], [-3]]), updates)
    expected = SQUARE.terms.copy()
    expected[[2, 0]] = updates.terms
    assert are_same(made, expected)
    assert made.dtype == FLOAT
    numbers = ran("ScatterND", known([1, 2, 3]), known([[1]]), known([9]))
    assert numbers.known is not None
    assert numbers.known.tolist() == [1, 9, 3]
    mixed = ran("ScatterND", known([1, 2, 3]), known([[1]]), free("u", 1, dtype=INT64))
    assert mixed.known is None
    into = ran("ScatterND", free("x", 3, dtype=INT64), known([[1]]), known([9]))
    assert into.known is None
    assert (into.terms[1] == constants(np.array(9))).all()
    assert (mixed.terms[[0, 2]] == constants(np.array([1, 3]))).all()


def test_updates_that_meet_or_that_are_added_have_no_rule() -> None:
    for indices, held in (([[1], [-2]], {}), ([[1], [0]], {"reduction": "add"})):
        with pytest.raises(NoRule):
            ran("ScatterND", SQUARE, known(indices), free("u", 2, 3), **held)
    plain = ran("ScatterND", SQUARE, known([[1], [0]]), free("u", 2, 3), reduction="none")
    assert plain.shape == (3, 3)


@pytest.mark.parametrize("op", ["GatherElements", "GatherND", "ScatterND"])
def test_unknown_indices_have_no_rule(op: str) -> None:
    with pytest.raises(NoRule):
        ran(op, SQUARE, free("at", 1, 1, dtype=INT64), free("u", 1, 3))


# --- repeats and pads -----------------------------------------------------------------------------


def test_an_expand_repeats_dims_of_one() -> None:
    x = free("x", 3, 1)
    made = ran("Expand", x, ints(2, 1, 4))
    assert are_same(made, np.broadcast_to(x.terms, (2, 3, 4)))
    with pytest.raises(Misfit, match=r"\[3, 1\] and \[2, 4\] of Expand do not broadcast"):
        ran("Expand", x, ints(2, 4))
    with pytest.raises(Unproved, match="the shape of Expand is not known"):
        ran("Expand", x, free("shape", 2, dtype=INT64))


def test_a_tile_repeats_all() -> None:
    assert are_same(ran("Tile", SQUARE, ints(2, 3)), np.tile(SQUARE.terms, (2, 3)))


def padded(
    x: CheckedTensor, *pads: int, filler: CheckedTensor | None = None, **held: Any
) -> CheckedTensor:
    return ran("Pad", x, ints(*pads), filler, **held)


def test_a_pad_is_filled_with_zero_or_with_a_number() -> None:
    made = padded(SQUARE, 1, 0, 0, 2)
    expected = np.full((4, 5), constants(np.array(0, np.float32)))
    expected[1:, :3] = SQUARE.terms
    assert are_same(made, expected)
    expected[expected == constants(np.array(0, np.float32))] = constants(np.array(7, np.float32))
    assert are_same(padded(SQUARE, 1, 0, 0, 2, filler=known(7, np.float32)), expected)
    older = ran("Pad", SQUARE, pads=[1, 0, 0, 2], value=7.0, opset=10)
    assert are_same(older, expected)
    numbers = padded(known([1, 2]), 1, 1, filler=known(5))
    assert numbers.known is not None
    assert numbers.known.tolist() == [5, 1, 2, 5]
    unknown = padded(known([1, 2]), 0, 1, filler=free("f", dtype=INT64))
    assert unknown.known is None
    assert are_same(unknown, np.concatenate([constants(np.array([1, 2])), [free("f").terms]]))


@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap"])
def test_other_modes_repeat_elements(mode: Any) -> None:
    made = padded(SQUARE, 1, 0, 2, 1, mode=mode)
    places = np.pad(np.arange(9).reshape(3, 3), [(1, 2), (0, 1)], mode=mode)
    assert are_same(made, SQUARE.terms.reshape(-1)[places])
    with pytest.raises(Unproved, match=f"Pad of mode {mode} of an empty tensor"):
        padded(free("none", 0, 3), 1, 0, 2, 1, mode=mode)


def test_pads_that_change_nothing_or_that_are_not_known() -> None:
    assert padded(SQUARE, 0, 0, 0, 0) is SQUARE
    assert padded(SQUARE, 0, 0, 0, 0, mode="reflect") is SQUARE
    with pytest.raises(Unproved, match="Pad of mode mirror"):
        padded(SQUARE, 1, 0, 0, 0, mode="mirror")
    with pytest.raises(Unproved, match="Pad with negative pads"):
        padded(SQUARE, 1, 0, 0, -1)


def test_widths_are_by_axis() -> None:
    plain = call("Pad", SQUARE, ints(1, 2, 3, 4))
    assert widths_of(plain, SQUARE) == [(1, 3), (2, 4)]
    named = call("Pad", SQUARE, ints(1, 2), None, ints(-1))
    assert widths_of(named, SQUARE) == [(0, 0), (1, 2)]
    assert widths_of(call("Pad", free("s"), known(np.zeros(0, np.int64))), free("s")) == []


# --- images, triangles ----------------------------------------------------------------------------

BLOCKS = free("blocks", 1, 8, 1, 2)
IMAGE = free("image", 1, 2, 4, 2)


def test_depth_becomes_space_in_two_orders() -> None:
    split = BLOCKS.terms.reshape(2, 2, 2, 1, 2)  # DCR: [block row, block column, channel, h, w]
    made = ran("DepthToSpace", BLOCKS, blocksize=2)
    assert are_same(made, split.transpose(2, 3, 0, 4, 1).reshape(1, 2, 2, 4))
    assert are_same(ran("DepthToSpace", BLOCKS, blocksize=2, mode="DCR"), made.terms)
    split = BLOCKS.terms.reshape(2, 2, 2, 1, 2)  # CRD: [channel, block row, block column, h, w]
    other = ran("DepthToSpace", BLOCKS, blocksize=2, mode="CRD")
    assert are_same(other, split.transpose(0, 3, 1, 4, 2).reshape(1, 2, 2, 4))


def test_space_becomes_depth_and_back() -> None:
    made = ran("SpaceToDepth", IMAGE, blocksize=2)
    assert made.shape == (1, 8, 2, 1)
    assert are_same(ran("DepthToSpace", made, blocksize=2), IMAGE.terms)
    assert (made.terms[0, 0, :, 0] == IMAGE.terms[0, 0, ::2, 0]).all()
    assert (made.terms[0, 3, :, 0] == IMAGE.terms[0, 1, ::2, 1]).all()
    other = ran("SpaceToDepth", IMAGE, blocksize=2, mode="CRD")
    assert are_same(ran("DepthToSpace", other, blocksize=2, mode="CRD"), IMAGE.terms)


@pytest.mark.parametrize(("held", "k"), [({}, 0), ({"upper": 1}, 1), ({"upper": 0}, -1)])
def test_a_triangle_is_kept(held: dict[str, int], k: int) -> None:
    cut = np.tril if held.get("upper", 1) == 0 else np.triu
    kept = cut(np.ones((3, 3), bool), k)
    diagonal = () if k == 0 else (known(k),)
    made = ran("Trilu", SQUARE, *diagonal, **held)
    assert are_same(made, np.where(kept, SQUARE.terms, constants(np.array(0, np.float32))))
    numbers = ran("Trilu", known(np.arange(9).reshape(3, 3) + 1), *diagonal, **held)
    assert numbers.known is not None
    assert (numbers.known == np.where(kept, np.arange(9).reshape(3, 3) + 1, 0)).all()


# --- shapes, Dropout ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("held", "expected"),
    [({}, [2, 3, 4]), ({"start": 1}, [3, 4]), ({"start": -1}, [4]), ({"end": -1}, [2, 3]),
     ({"start": 1, "end": 2}, [3]), ({"start": -9, "end": 9}, [2, 3, 4])],
)  # fmt: skip
def test_shapes_are_known(held: dict[str, int], expected: list[int]) -> None:
    made = ran("Shape", X, **held)
    assert made.known is not None
    assert (made.known.dtype, made.known.tolist()) == (np.int64, expected)
    size = ran("Size", X)
    assert size.known is not None
    assert (size.known.dtype, size.known.tolist(), size.dtype) == (np.int64, 24, INT64)


def test_a_dropout_in_inference_is_its_operand() -> None:
    (made,) = MOVES["Dropout"](call("Dropout", X))
    assert made is X
    made, mask = MOVES["Dropout"](call("Dropout", X, outputs=("y", "mask")))
    assert made is X
    assert mask is not None
    assert mask.known is not None
    assert (mask.dtype, mask.shape) == (BOOL, (2, 3, 4))
    assert mask.known.all()
    never = call("Dropout", X, known(0.5, np.float32), known(False, np.bool_))
    assert MOVES["Dropout"](never) == [X]


def test_a_dropout_in_training_is_random_unless_it_drops_nothing() -> None:
    zero, half, training = known(0, np.float32), known(0.5, np.float32), known(True, np.bool_)
    unknown = free("t", dtype=BOOL)
    assert MOVES["Dropout"](call("Dropout", X, zero, training)) == [X]
    assert MOVES["Dropout"](call("Dropout", X, zero, unknown)) == [X]
    for inputs, outputs in (((half, training), ("y",)), ((None, training), ("y",)),
                            ((free("r"), training), ("y",)),
                            ((zero, training), ("y", "mask"))):  # fmt: skip
        with pytest.raises(Unproved, match="Dropout in training is random"):
            MOVES["Dropout"](call("Dropout", X, *inputs, outputs=outputs))
    with pytest.raises(Unproved, match="training_mode of Dropout is not known"):
        MOVES["Dropout"](call("Dropout", X, half, unknown))
