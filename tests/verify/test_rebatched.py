"""A result for a batch of another size is compared sample by sample, at that size."""

from typing import Any

import numpy as np
import onnx
import pytest

from tiered import (
    InterfaceMap,
    Model,
    PassContext,
    TensorType,
    VerificationError,
    get_pass,
    module_pass,
    optimize_model,
)
from tiered.graph.core.interface_map import BatchMap, ListMap
from tiered.runtime.inputs.samples import Wanted
from tiered.support.errors import RuntimeFailure
from tiered.testing import parse
from tiered.verify.rebatched import alike, batch_size, joined, parts, stacked, wanted_sizes
from tiered.verify.verify_instrument import Verify

MODEL = """(float[1,6,8] x) => (float[1,6,8] y) <int64[4] s = {1,6,2,4}, int64[3] u = {1,6,8}> {
    h = Reshape(x, s)  t = Transpose<perm = [0,2,1,3]>(h)  p = Softmax<axis = 2>(t)
    v = Transpose<perm = [0,2,1,3]>(p)  y = Reshape(v, u) }"""
HALVES = """(float16[1,6] x) => (float16[1,6] y) { y = Softmax<axis = 1>(x) }"""


@module_pass(opt_level=None, changes_interface=True, name="mix")
def mix(model: Model, ctx: PassContext, *, size: int = 4) -> None:
    """Let the heads of all samples follow one another, as a batch on the wrong axis does."""
    main = model.main
    (node,) = [node for node in main.nodes if node.label == "h"]
    main.set_input(node, 1, main.constant(np.array([1, -1, 2, 4]), "s4"))
    (last,) = [node for node in main.nodes if node.label == "y"]
    main.set_input(last, 1, main.constant(np.array([size, 6, 8]), "u4"))
    for value in (*main.inputs, *main.outputs):
        main.set_declared_type(value, TensorType(onnx.TensorProto.FLOAT, (size, 6, 8)))
    model.note_interface(InterfaceMap(batch=BatchMap(1, {"x": 0}, {"y": (0, 1, 1)})))


def test_a_batch_on_the_wrong_axis_is_found() -> None:
    with pytest.raises(VerificationError, match="mix changed output 'y'"):
        optimize_model(parse(MODEL), passes=[mix], verify=True)


@pytest.mark.parametrize(("size", "shapes"), [(4, [4, 4]), (3, [3, 3]), ("N", [2, 3])])
def test_the_result_runs_at_the_new_sizes(size: int | str, shapes: list[int]) -> None:
    result = optimize_model(parse(MODEL), passes=[get_pass("change_batch", size=size)], verify=True)
    assert result.verify is not None
    assert [sample.inputs.feeds["x"].shape[0] for sample in result.verify.samples] == shapes
    assert [way.by for way in result.verify.ways] == ["model"]


@pytest.mark.parametrize("size", [4, "N"])
def test_the_tensors_of_a_sequence_are_compared(size: int | str) -> None:
    text = "(float[1,3] x) => (seq(float[1,3]) y) { r = Relu(x)  y = SequenceConstruct(x, r) }"
    result = optimize_model(parse(text), passes=[get_pass("change_batch", size=size)], verify=True)
    assert result.verify is not None
    assert result.verify.verdict.word == "yes"


def test_an_error_within_verification_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise AttributeError("no such thing")

    monkeypatch.setattr(Verify, "_verify", broken)
    with pytest.raises(AttributeError, match="no such thing"):
        optimize_model(parse(MODEL), passes=[get_pass("change_batch", size=4)], verify=True)


def test_given_samples_of_the_former_size_are_stacked() -> None:
    given = [{"x": np.full((1, 6, 8), number, np.float32)} for number in range(3)]
    result = optimize_model(
        parse(MODEL), passes=[get_pass("change_batch", size=4)], verify=True, inputs=given
    )
    assert result.verify is not None
    last = result.verify.samples[-1].inputs.feeds["x"]
    assert last[:, 0, 0].tolist() == [0, 1, 2, 0]


def test_given_samples_of_another_size_are_remarked() -> None:
    text = "(float[1,N] x) => (float[1,N] y) { y = Neg(x) }"
    given = [{"x": np.full((1, width), width, np.float32)} for width in (2, 3, 2)]
    result = optimize_model(
        parse(text), passes=[get_pass("change_batch", size=4)], verify=True, inputs=given
    )
    assert result.verify is not None
    assert [str(each) for each in result.remarks if each.kind == "verify"] == [
        "change_batch: 1 given sample left out, as the first one is of another size"
    ]
    assert result.verify.samples[-1].inputs.feeds["x"].tolist() == [[2, 2]] * 4
    assert [way.inputs for way in result.verify.ways] == ["given"]


def test_names_that_change_too() -> None:
    names = {"x": "image", "y": "z"}
    passes = [get_pass("change_batch", size=4), get_pass("rename", tensors=names)]
    result = optimize_model(parse(MODEL), passes=passes, verify="final")
    assert result.verify is not None
    assert [o.name for o in result.verify.comparisons[0].outputs] == ["z"]
    passes = [passes[1], get_pass("change_batch", size=4, axes={"image": 0})]
    result = optimize_model(parse(MODEL), passes=passes, verify="final")
    assert result.verify is not None
    assert [o.name for o in result.verify.comparisons[0].outputs] == ["z"]


def test_narrow_floats_are_judged_in_parts_too() -> None:
    result = optimize_model(parse(HALVES), passes=[get_pass("change_batch", size=2)], verify=True)
    assert result.verify is not None
    assert [way.judge for way in result.verify.ways] == ["onnx.reference"]


def test_an_output_without_a_counterpart_is_named() -> None:
    @module_pass(opt_level=None, changes_interface=True, name="one_more")
    def one_more(model: Model, ctx: PassContext) -> None:
        """Return another output too."""
        main = model.main
        made = main.op.Neg(main.inputs[0])
        info = onnx.ValueInfoProto()
        info.CopyFrom(main.output_infos[0])
        info.name = made.name
        main.set_graph_outputs([*main.outputs, made], [*main.output_infos, info])

    result = optimize_model(parse(MODEL), passes=[one_more], verify=True)
    (remark,) = [each.reason for each in result.remarks if each.kind == "verify"]
    assert remark.endswith("not compared: the model before has no such tensor")


# --- parts and their outputs ----------------------------------------------------------------------


def test_parts_begin_again_at_the_first_sample() -> None:
    assert parts(5, BatchMap(2, {}, {})) == [[0, 1], [2, 3], [4, 0]]


def test_outputs_with_groups_and_neighbours() -> None:
    batch = BatchMap(1, {}, {"y": (0, 2, 3), "z": None})
    runs = [{"y": np.arange(6) + 10 * at, "z": np.ones(2)} for at in range(2)]
    found = joined(runs, parts(2, batch), batch, 2)
    assert found["y"].tolist() == [0, 1, 2, 10, 11, 12, 3, 4, 5, 13, 14, 15]
    assert found["z"].tolist() == [1, 1]


def test_given_samples_of_other_sizes_are_left_out() -> None:
    fed = [{"x": np.zeros((1, 2))}, {"x": np.zeros((1, 3))}, {"x": np.ones((1, 2))}]
    made = stacked(alike(fed), 3, BatchMap(1, {"x": 0}, {}))
    assert made["x"].tolist() == [[0, 0], [1, 1], [0, 0]]


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ((0, -1, 1), [0, 1, 10, 11, 2, 3, 12, 13]),
        ((0, 2, -1), [0, 1, 10, 11, 2, 3, 12, 13]),
        ((0, 1, -1), [0, 1, 2, 3, 10, 11, 12, 13]),
        ((0, 1, 2), [0, 1, 2, 3, 10, 11, 12, 13]),
    ],
)
def test_groups_or_neighbours_may_follow_from_the_shape(
    place: tuple[int, int, int], expected: list[int]
) -> None:
    batch = BatchMap(2, {}, {"y": place})
    runs = [{"y": np.arange(4)}, {"y": np.arange(4) + 10}]
    assert joined(runs, parts(4, batch), batch, 4)["y"].tolist() == expected


ENTRIES = [[0, 5], [1, 6], [1, 7]]
"""One entry of the first sample, two of the second one."""


@pytest.mark.parametrize(
    ("old", "size", "place", "runs", "expected"),
    [
        (2, 4, ListMap(0, (1, 0)), [ENTRIES, ENTRIES],
         [[0, 5], [1, 6], [1, 7], [2, 5], [3, 6], [3, 7]]),
        (2, 3, ListMap(0, (1, 0)), [ENTRIES, ENTRIES], [[0, 5], [1, 6], [1, 7], [2, 5]]),
        (2, 3, ListMap(0, (0, 4)), [[[9, 0], [9, 4]], [[8, 3], [8, 4]]],
         [[9, 0], [9, 4], [8, 11]]),
        (2, 1, ListMap(0, (1, 0)), [[[0, 5], [1, 5]]], [[0, 5]]),
        (2, 3, ListMap(0, (1,)), [[0, 1], [0, 1]], [0, 1, 2]),
        (2, 4, ListMap(0, (0, 0)), [[[1, 2]], [[3, 4]]], [[1, 2], [3, 4]]),
        (2, 1, ListMap(0, (0, 0)), [[[1, 2], [1, 2]]], [[1, 2]]),
    ],
)  # fmt: skip
def test_entries_name_their_samples(
    old: int, size: int, place: ListMap, runs: list[Any], expected: list[Any]
) -> None:
    batch = BatchMap(old, {}, {"y": place})
    made = [{"y": np.array(run)} for run in runs]
    assert joined(made, parts(size, batch), batch, size)["y"].tolist() == expected


@pytest.mark.parametrize(
    ("place", "arrays", "because"),
    [
        ((0, -1, -1), [np.zeros(2)] * 2, "where the samples are in output 'y' is not known"),
        ((0, 1, 1), [np.zeros(2), np.zeros(3)], "output 'y' has another shape for other samples"),
        ((0, 1, 1), [[np.zeros(2)], [np.zeros(2)] * 2], "has another length for other samples"),
        (None, [np.zeros(2), np.ones(2)], "'y' of the model before differs by sample"),
        (None, [[np.zeros(2)], [np.ones(2)]], "'y' of the model before differs by sample"),
        (ListMap(0, (0, 0)), [np.array(ENTRIES)] * 2, "which sample the entries of output 'y'"),
    ],
)
def test_what_does_not_follow_from_the_runs_is_named(
    place: Any, arrays: list[Any], because: str
) -> None:
    batch = BatchMap(2, {}, {"y": place})
    with pytest.raises(RuntimeFailure, match=because):
        joined([{"y": array} for array in arrays], parts(3, batch), batch, 3)


def test_tensors_of_a_list_are_joined_one_by_one() -> None:
    batch = BatchMap(1, {}, {"y": (0, 1, 1), "z": None})
    same = [np.array([7])]
    runs: list[dict[str, Any]] = [
        {"y": [np.array([1]), np.array([2])], "z": same},
        {"y": [np.array([3]), np.array([4])], "z": same},
    ]
    found = joined(runs, parts(2, batch), batch, 2)
    assert [each.tolist() for each in found["y"]] == [[1, 3], [2, 4]]
    assert found["z"] is same


def test_the_samples_are_along_the_axis_of_an_input_of_the_batch() -> None:
    batch = BatchMap(1, {"z": 0, "x": 1}, {})
    assert batch_size({"x": np.zeros((2, 5))}, batch) == 5
    with pytest.raises(RuntimeFailure, match="no input of the batch goes on"):
        batch_size({"w": np.zeros(3)}, batch)


@pytest.mark.parametrize(
    ("old", "given", "shapes"),
    [
        (1, {}, [[2, "M"], [3, "M"]]),
        (4, {}, [[8, "M"], [1, "M"]]),
        (1, {"x": ["N", 5]}, [[2, 5], [3, 5]]),
    ],
)
def test_a_dynamic_batch_is_tried_at_two_sizes(
    old: int, given: dict[str, list[int | str]], shapes: list[list[int | str]]
) -> None:
    model = parse("(float[N,M] x, float[M] z) => (float[N,M] y) { y = Add(x, z) }")
    batch, wanted = BatchMap(old, {"x": 0}, {"y": (0, 1, 1)}), Wanted(shapes=given)
    found = [*wanted_sizes(model, wanted, InterfaceMap(batch=batch), batch)]
    assert [[*each.shapes["x"]] for each in found] == shapes
    assert [each.bindings for each in found] == [1, 1]
    fixed = parse("(float[4,M] x) => (float[4,M] y) { y = Neg(x) }")
    (only,) = wanted_sizes(fixed, wanted, InterfaceMap(batch=batch), batch)
    assert only.shapes == given
