"""A model that runs slice by slice: the same results, with few weights in memory at a time."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest

from tests.small import proto
from tests.verify.in_process import in_process
from tiered.runtime import Worker
from tiered.support.errors import OutOfMemory, RuntimeFailure
from tiered.targets.custom import CustomOperator
from tiered.verify import sliced_session
from tiered.verify.part_extraction import GraphPart
from tiered.verify.sliced_session import (
    SlicedSession,
    bare_types,
    feeds_for,
    open_model,
)

TEXT = """g (float[2] x) => (float[2] y, float[2] s) <float[2] w = {1, 2}, float[2] v = {3, 4},
    float[2] u = {5, 6}> {
    a = Mul(x, w)  b = Add(a, v)  s = Sub(b, a)  c = Neg(b)  y = Mul(c, u) }"""
X = np.array([1, -2], np.float32)
A, B, S, C, Y = ([1, -4], [4, 0], [3, 4], [-4, 0], [-20, 0])


def sliced(
    worker: Worker, text: str | onnx.ModelProto = TEXT, most: int | None = None, **how: Any
) -> SlicedSession:
    model = proto(text) if isinstance(text, str) else text
    return SlicedSession(GraphPart.of(model), "", worker, most, **how)


def lists(values: Mapping[str, Any]) -> dict[str, list[float]]:
    return {name: array.tolist() for name, array in values.items()}


@pytest.mark.parametrize(
    ("most", "nodes", "count"),
    [
        (None, None, 5),  # each node
        (8, None, 3),  # a weight each
        (16, None, 2),
        (15, None, 3),
        (24, None, 1),
        (None, 2, 3),
        (None, 5, 1),
        (0, 1, 5),
    ],
)
def test_slices_compute_what_the_model_does(
    most: int | None, nodes: int | None, count: int
) -> None:
    here, worker = in_process()
    session = sliced(worker, most=most, nodes=nodes)
    assert (session.inputs, session.outputs) == (("x",), ("y", "s"))
    assert lists(session.run({"x": X})) == {"y": Y, "s": S}
    assert len(here.opened) == here.runs == count
    assert all(each.is_closed for each in here.opened)


def test_any_value_can_be_asked_for_and_what_is_not_needed_does_not_run() -> None:
    here, worker = in_process()
    session = sliced(worker)
    wanted = ("c", "a", "x", "w")
    found = session.run({"x": X}, wanted)
    assert tuple(found) == wanted
    assert lists(found) == {"c": C, "a": A, "x": X.tolist(), "w": [1, 2]}
    here.runs = 0
    assert lists(session.run({"x": X}, ["a"])) == {"a": A}
    assert here.runs == 3  # a, b and c: each has a reader in a later slice


def test_a_node_that_reads_too_much_has_no_slice() -> None:
    _, worker = in_process()
    with pytest.raises(OutOfMemory, match="a single node reads 0 MiB of weights"):
        sliced(worker, most=7)
    large = proto(TEXT)
    large.graph.initializer[0].CopyFrom(
        onnx.numpy_helper.from_array(np.zeros(5 << 18, np.float32), "w")
    )
    with pytest.raises(OutOfMemory, match="a single node reads 5 MiB of weights"):
        sliced(worker, large, most=7)


def test_slices_can_stay_open_for_all_runs() -> None:
    here, worker = in_process()
    session = sliced(worker, keeps_open=True)
    for _ in range(2):
        assert lists(session.run({"x": X})) == {"y": Y, "s": S}
    assert (len(here.opened), here.runs) == (5, 10)
    assert not any(each.is_closed for each in here.opened)
    session.run({"x": X}, ["y"])  # other results of a slice: it is opened again
    session.close()
    assert all(each.is_closed for each in here.opened)
    session.close()


def test_values_are_streamed_in_the_order_of_the_nodes() -> None:
    here, worker = in_process()
    session = sliced(worker)
    found = list(session.stream({"x": X}))
    assert [name for name, _ in found] == ["a", "b", "s", "c", "y"]
    assert lists(dict(found)) == {"a": A, "b": B, "s": S, "c": C, "y": Y}
    here.runs = 0
    assert lists(dict(session.stream({"x": X}, ["y", "b"]))) == {"b": B, "y": Y}
    assert here.runs == 4  # without s
    assert lists(dict(sliced(worker, nodes=5).stream({"x": X}, {"a"}))) == {"a": A}


def test_a_value_is_held_until_its_last_use(monkeypatch: pytest.MonkeyPatch) -> None:
    _, worker = in_process()
    seen: list[tuple[list[str], list[str]]] = []
    run = SlicedSession._run_slice

    def noting(self: Any, nodes: Any, results: Any, values: Any) -> Any:
        seen.append((sorted(values), sorted(results)))
        return run(self, nodes, results, values)

    monkeypatch.setattr(SlicedSession, "_run_slice", noting)
    expected = [
        (["x"], ["a"]), (["a"], ["b"]), (["a", "b"], ["s"]), (["b", "s"], ["c"]),
        (["c", "s"], ["y"]),
    ]  # fmt: skip
    sliced(worker).run({"x": X})
    assert seen == expected
    seen.clear()
    list(sliced(worker).stream({"x": X}))
    assert seen == [(values[:1] if "s" in values else values, made) for values, made in expected]


def test_an_input_without_a_value_is_named() -> None:
    _, worker = in_process()
    with pytest.raises(RuntimeFailure, match="cannot run the model: it has no input for 'x'"):
        sliced(worker).run({})


# --- defaults -------------------------------------------------------------------------------------


def defaulted(ir_version: int) -> onnx.ModelProto:
    """Return a model whose initializer is an input, too."""
    made = proto("g (float[2] x, float[2] w) => (float[2] y) { y = Mul(x, w) }")
    made.ir_version = ir_version
    tensor = onnx.numpy_helper.from_array(np.array([2, 3], np.float32), "w")
    made.graph.initializer.append(tensor)
    return made


def test_a_default_can_be_fed() -> None:
    _, worker = in_process()
    session = sliced(worker, defaulted(10))
    assert session.inputs == ("x",)
    assert lists(session.run({"x": X})) == {"y": [2, -6]}
    other = np.array([10, 10], np.float32)
    assert lists(session.run({"x": X, "w": other})) == {"y": [10, -20]}


def test_in_old_files_a_default_is_a_constant() -> None:
    _, worker = in_process()
    other = np.array([10, 10], np.float32)
    for version, expected in ((3, [2, -6]), (4, [10, -20])):
        session = sliced(worker, defaulted(version))
        assert lists(session.run({"x": X, "w": other})) == {"y": expected}


# --- Python references ----------------------------------------------------------------------------

CUSTOM = """<ir_version: 10, opset_import: ["": 21, "own": 1]>
    g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> {
    a = Neg(x)  b, c = own.Split<by = 3, mode = "m">(a, , w)  d = Abs(b)  y = Add(d, c) }"""


def custom() -> onnx.ModelProto:
    return onnx.parser.parse_model(CUSTOM)


def split(*operands: Any, **attributes: Any) -> Any:
    a, absent, w = operands
    assert absent is None
    assert attributes == {"by": 3, "mode": b"m"}
    return a * 3, a + w


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Let operators of a domain have Python references."""
    held: dict[str, Any] = {"Split": split}
    monkeypatch.setattr(
        sliced_session,
        "references",
        lambda model: {(n.domain, n.op_type): held[n.op_type]
                       for n in model.graph.node if n.domain == "own"},
    )  # fmt: skip
    return held


@pytest.mark.parametrize(("most", "nodes"), [(None, None), (1 << 20, None), (None, 9)])
@pytest.mark.usefixtures("own")
def test_a_reference_runs_alone(most: int | None, nodes: int | None) -> None:
    here, worker = in_process()
    session = sliced(worker, custom(), most, nodes=nodes)
    assert lists(session.run({"x": X})) == {"y": [3, 10]}
    assert here.runs == (3 if most is None and nodes is None else 2)
    streamed = dict(session.stream({"x": X}))
    assert lists(streamed) == {"a": [-1, 2], "b": [-3, 6], "c": [0, 4], "d": [3, 6], "y": [3, 10]}


def test_what_a_reference_raises_or_returns_is_named(own: dict[str, Any]) -> None:
    _, worker = in_process()
    own["Split"] = lambda *_operands, **_attributes: np.zeros(2)
    with pytest.raises(RuntimeFailure) as failed:
        sliced(worker, custom()).run({"x": X})
    assert str(failed.value) == (
        "the reference of own::Split returned 1 array; the node has 2 outputs"
    )

    def fails(*_operands: Any, **_attributes: Any) -> Any:
        raise KeyError("no")

    own["Split"] = fails
    with pytest.raises(RuntimeFailure, match="the reference of own::Split failed: KeyError: 'no'"):
        sliced(worker, custom()).run({"x": X})


def test_a_reference_may_return_a_list_of_numbers(own: dict[str, Any]) -> None:
    _, worker = in_process()
    own["Split"] = lambda a, _absent, w, **_held: [a.tolist(), w]
    found = sliced(worker, custom()).run({"x": X}, ["b"])
    assert isinstance(found["b"], np.ndarray)


# --- opening --------------------------------------------------------------------------------------


def test_a_model_without_references_opens_whole() -> None:
    here, worker = in_process()
    with open_model(worker, proto(TEXT), label="a name") as session:
        assert lists(session.run({"x": X})) == {"y": Y, "s": S}
    assert here.how[0]["label"] == "a name"
    assert here.opened[0].is_closed


def test_a_model_with_references_opens_in_slices(
    own: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    assert own
    known = {("own", "Split"): CustomOperator("own", "Split", reference="module:function")}
    monkeypatch.setattr(sliced_session, "known", lambda: known)
    here, worker = in_process()
    path = tmp_path / "model.onnx"
    onnx.save(custom(), path)
    for model in (custom(), str(path)):
        with open_model(worker, model, label="dropped") as session:
            assert isinstance(session, SlicedSession)
            assert lists(session.run({"x": X})) == {"y": [3, 10]}
    assert all("label" not in how for how in here.how)
    with open_model(worker, proto(TEXT)) as plain:
        assert not isinstance(plain, SlicedSession)


def test_types_have_no_shapes() -> None:
    found = bare_types({"x": X, "l": [X]})
    assert found["x"].tensor_type.elem_type == onnx.TensorProto.FLOAT
    assert not found["x"].tensor_type.HasField("shape")
    assert found["l"].HasField("sequence_type")
    with pytest.raises(RuntimeFailure, match="cannot run with 'x' as an input: "):
        bare_types({"x": object()})


def test_a_model_takes_its_inputs_and_defaults() -> None:
    held = {"x": X, "w": X, "y": X, "other": X}
    assert set(feeds_for(defaulted(4), held)) == {"x", "w"}
    assert set(feeds_for(defaulted(3), held)) == {"x"}
    assert set(feeds_for(defaulted(4), {"w": X})) == {"w"}
    assert set(feeds_for(proto(TEXT), held)) == {"x"}
