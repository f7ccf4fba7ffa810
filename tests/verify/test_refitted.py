"""Models with another interface are compared on what has the same name, or what the pass maps."""

from typing import Any

import numpy as np
import onnx
import pytest

from tests.small import model
from tests.verify.in_process import in_process
from tiered import (
    InterfaceMap,
    Model,
    Pass,
    PassContext,
    VerificationError,
    get_pass,
    module_pass,
    optimize_model,
)
from tiered.graph.core.interface_map import BatchMap, PackMap, converted
from tiered.runtime.inputs.make import Inputs
from tiered.runtime.inputs.samples import Sample, Wanted
from tiered.support.errors import RuntimeFailure
from tiered.testing import parse
from tiered.verify.baseline import Baseline
from tiered.verify.methods import How
from tiered.verify.refitted import Refitting

TEXT = """(float[N,4] x) => (float[N,4] y, float[N,4] q)
    <float[4] w = {1,2,3,4}> { a = Mul(x, w)  b = Relu(a)  y = Exp(b)  q = Neg(a) }"""


def compared(pass_: Pass | str, text: str = TEXT) -> list[list[str]]:
    """Return the outputs that verification compared, for each sample; it must not complain."""
    result = optimize_model(parse(text), passes=[pass_], verify=True)
    assert result.verify is not None
    assert [r for r in result.remarks if r.kind == "verify"] == []
    return [[output.name for output in each.outputs] for each in result.verify.comparisons]


def test_the_part_after_a_cut_gets_what_the_model_before_computes() -> None:
    assert compared(get_pass("extract", inputs=["b"], outputs=["y"])) == [["y"], ["y"]]


def test_a_new_output_is_compared_with_the_tensor_of_its_name() -> None:
    assert compared(get_pass("add_checkpoints", tensors=["b"])) == [["y", "q", "b"]] * 2
    assert compared(get_pass("extract", outputs=["b"])) == [["b"]] * 2


@module_pass(opt_level=None, changes_interface=True, name="wrong")
def wrong(model: Model, ctx: PassContext) -> None:
    """Of no meaning: cut, and change a weight."""
    get_pass("extract", inputs=["b"], outputs=["y"]).apply(model, ctx)
    node = model.main.nodes[0]
    model.main.set_operator(node, "Neg")


def test_a_wrong_part_is_found() -> None:
    with pytest.raises(VerificationError, match="wrong changed output 'y'"):
        optimize_model(parse(TEXT), passes=[wrong], verify=True)


GIVEN = {"x": np.full((2, 4), 2, np.float32), "w": np.full(4, 7, np.float32)}

OF_DEFAULTS: dict[str, tuple[Pass, dict[str, float]]] = {
    "goes on": (get_pass("extract", inputs=["b"]), {"b": 14, "w": 7}),
    "stays": (get_pass("extract", outputs=["y"]), {"x": 2, "w": 7}),
    "another name": (get_pass("rename", tensors={"w": "z"}), {"x": 2, "z": 7}),
    "another dtype": (get_pass("float_to_half", keep_io_types=False), {"x": 2, "w": 7}),
    "a constant": (get_pass("remove_initializer_from_input"), {"x": 2}),
}
"""A pass that changes the interface, and what is fed afterwards."""


@pytest.mark.parametrize("name", OF_DEFAULTS)
def test_a_default_that_a_sample_replaces_is_fed_to_both_models(name: str) -> None:
    text = """(float[N,4] x, float[4] w) => (float[N,4] y, float[N,4] q) <float[4] w = {1,2,3,4}> {
        a = Mul(x, w)  b = Relu(a)  e = Add(b, w)  y = Neg(e)  q = Neg(a) }"""
    pass_, expected = OF_DEFAULTS[name]
    verify = optimize_model(parse(text), passes=[pass_], verify=True, inputs=[GIVEN]).verify
    assert verify is not None
    assert verify.comparisons
    feeds = verify.samples[0].inputs.feeds
    assert {each: float(array.flat[0]) for each, array in feeds.items()} == expected


def test_given_samples_that_the_result_does_not_take_are_remarked() -> None:
    text = """(float[N,4] x) => (float[N,4] y, float[N,4] q)
        { a = Identity(x)  b = Relu(a)  y = Neg(b)  q = Neg(a) }"""
    given = [{"x": np.ones((2, 4), np.float32)}]
    others = (
        "the given inputs do not fit the model any more, so others were made: "
        "inputs 1: 'x' is float32 [2, 4]; the model takes float32 [3, 4]"
    )
    none = "it changes the interface, so no region was compared"
    rows: tuple[tuple[How, list[str], list[str]], ...] = (
        ("each", [f"change_batch: {others}"], ["generated"] * 2),
        ("final", [others], ["generated"]),
        ("region", [f"change_batch: {none}", others], ["", "recorded"]),
    )
    for how, remarks, inputs in rows:
        passes = (get_pass("change_batch", size=3), "eliminate_identity")
        result = optimize_model(parse(text), passes=passes, verify=how, inputs=given)
        assert result.verify is not None
        assert [str(each) for each in result.remarks if each.kind == "verify"] == remarks, how
        assert [way.inputs for way in result.verify.ways] == inputs, how
        assert [sample.is_given for sample in result.verify.samples] == [False] * 2, how


def shifted(to: float) -> Pass:
    @module_pass(opt_level=None, changes_interface=True, name="shift")
    def shift(model: Model, ctx: PassContext) -> None:
        """Of no meaning: the input is shifted by 1, and has another name."""
        graph, (x,) = model.main, model.main.inputs
        graph.rename_value(x, "z")
        one = graph.constant(np.array(to, np.float32))
        (node,) = x.readers
        graph.set_input(node, 0, graph.op.Sub(x, one))
        model.note_interface(InterfaceMap(feeds={"x": ("z", lambda array: array - 1)}))

    return shift


def test_the_inputs_before_follow_from_new_ones() -> None:
    assert compared(shifted(1)) == [["y", "q"]] * 2
    with pytest.raises(VerificationError, match="shift changed output"):
        optimize_model(parse(TEXT), passes=[shifted(2)], verify=True)


def test_maps_of_several_passes_are_one() -> None:
    first = InterfaceMap({"b": ("a", np.negative)}, {"x": ("u", np.negative)})
    second = InterfaceMap({"c": ("b", np.exp)}, {"u": ("v", np.exp)})
    both = second.after(first)
    one = np.ones(1)
    source, convert = both.tensors["c"]
    assert (source, float(converted(convert, one)[0])) == ("a", float(np.exp(-1.0)))
    source, convert = both.feeds["x"]
    assert (source, float(converted(convert, one)[0])) == ("v", -float(np.exp(1.0)))


def test_what_is_undone_relates_no_more() -> None:
    model = Model.from_proto(parse(TEXT))
    start, mark = model.journal.stamp(), model.mark()
    model.main.rename_value(model.main.inputs[0], "z")
    model.note_interface(InterfaceMap(tensors={"z": ("x", None)}))
    assert model.interface_since(start).tensors == {"z": ("x", None)}
    model.undo_to(mark)
    assert model.interface_since(start) == InterfaceMap()
    model.main.rename_value(model.main.inputs[0], "u")
    assert model.interface_since(start) == InterfaceMap()
    assert isinstance(model.to_proto(), onnx.ModelProto)


HALF_TEXT = """(float[2] x) => (float[2] y) <float k = {40000}>
    { a = Mul(x, k)  b = Mul(a, k)  c = Div(b, k)  y = Div(c, k) }"""


def test_an_overflow_behind_another_interface_is_found() -> None:
    lower = get_pass("float_to_half", keep_io_types=False)
    with pytest.raises(VerificationError, match=r"judged +onnx\.reference, on both models"):
        optimize_model(parse(HALF_TEXT), passes=[lower], verify=True)


def test_the_report_names_who_judged_another_interface(monkeypatch: pytest.MonkeyPatch) -> None:
    def judges(keep: bool) -> list[str]:
        lower = get_pass("float_to_half", keep_io_types=keep)
        found = optimize_model(parse(TEXT), passes=[lower], verify=True).verify
        assert found is not None
        return [way.judge for way in found.ways]

    assert judges(keep=False) == judges(keep=True) == ["onnx.reference"]
    monkeypatch.setattr("tiered.verify.reference_check._MOST_RULED", 1)
    assert judges(keep=False) == ["onnxruntime"]


def test_a_changed_interface_without_halves_is_not_given_to_the_reference() -> None:
    found = optimize_model(parse(TEXT), passes=[shifted(1)], verify=True).verify
    assert found is not None
    assert [way.judge for way in found.ways] == ["onnxruntime"]


OLD = "(float[2] x, float[2] v) => (float[2] y) { a = Neg(x)  y = Mul(a, v) }"


def refitting(after: str, relation: InterfaceMap, before: str = OLD) -> Refitting:
    _, worker = in_process()
    first = Baseline.of(model(f"g {before}"))
    feeds = {"x": np.array([1, 2], np.float32), "v": np.array([3, 4], np.float32)}
    given = {name: feeds[name] for name in ("x", "v") if f"[2] {name}" in before}
    wanted = Wanted((given,) if given else ())
    first.run(worker, wanted)
    new = parse(after)
    return Refitting(first, new, worker.open(new), relation, worker)


def test_samples_go_on_where_the_new_inputs_are_tensors_of_the_model_before() -> None:
    rows: list[tuple[str, InterfaceMap, bool, list[str]]] = [
        ("(float[2] a, float[2] v) => (float[2] y) { y = Mul(a, v) }", InterfaceMap(), True, ["y"]),
        ("(float[2] x, float[2] v) => (float[2] a) { a = Neg(x) }", InterfaceMap(), False, ["a"]),
        ("(float[2] z, float[2] v) => (float[2] y, float[2] o) { y = Mul(z, v)  o = Neg(z) }",
         InterfaceMap(), False, ["y"]),
        ("(float[2] z, float[2] v) => (float[2] y) { y = Mul(z, v) }",
         InterfaceMap({"z": ("a", None)}), True, ["y"]),
        ("(float[2] x, float[2] v) => (float[2] y) { y = Mul(x, v) }",
         InterfaceMap({"x": ("a", None)}), True, ["y"]),
        ("(float[2] a, float[2] v) => (float[2] x) { x = Mul(a, v) }",
         InterfaceMap(feeds={"x": ("a", None)}), False, ["x"]),
    ]  # fmt: skip
    for after, relation, expected, outputs in rows:
        made = refitting(after, relation)
        assert made._goes_on() == expected, after
        assert made._outputs() == outputs, after


def test_inputs_before_follow_from_new_ones_without_a_conversion() -> None:
    after = "(float[2] x, float[2] z) => (float[2] y) { y = Mul(x, z) }"
    one, two = np.full(2, 8, np.float32), np.full(2, 9, np.float32)
    rows: list[tuple[InterfaceMap, dict[str, Any], dict[str, float]]] = [
        (InterfaceMap(), {"x": one}, {"x": 8, "v": 3}),
        (InterfaceMap({"z": ("v", None)}), {"x": one, "z": two}, {"x": 8, "v": 9}),
        (InterfaceMap({"z": ("v", None)}), {"x": one}, {"x": 8, "v": 3}),
        (InterfaceMap({"z": ("v", np.negative)}), {"x": one, "z": two}, {"x": 8, "v": 3}),
        (InterfaceMap({"z": ("a", None)}), {"x": one, "z": two}, {"x": 8, "v": 3}),
        (InterfaceMap(feeds={"v": ("z", np.negative)}), {"x": one, "z": two}, {"x": 8, "v": -9}),
    ]
    for relation, feeds, expected in rows:
        found = refitting(after, relation)._old_feeds(feeds)
        assert {name: float(array[0]) for name, array in found.items()} == expected, relation


def test_a_batch_whose_inputs_do_not_follow_is_not_compared() -> None:
    batch = BatchMap(2, {"x": 0, "gone": 0}, {"y": (0, 1, 1)})
    after = "(float[4] z, float[2] v) => (float[4] y) { y = Neg(z) }"
    made = refitting(after, InterfaceMap(batch=batch))
    z = np.zeros(4, np.float32)
    with pytest.raises(RuntimeFailure, match=r"^input 'x' of the model before does not follow$"):
        made._old_feeds_of_batch({"z": z})
    with pytest.raises(RuntimeFailure, match=r"^input 'z' does not follow$"):
        made._new_feeds({"x": z, "v": z})
    names = {"z": ("x", None), "other": ("y", None)}
    renamed = refitting(after, InterfaceMap(names, batch=batch))
    assert list(renamed._old_feeds_of_batch({"z": z})) == ["x", "v"]
    assert renamed._new_feeds({"x": z, "v": z}).keys() == {"z", "v"}
    moved = InterfaceMap({"z": ("x", np.negative)}, {"x": ("z", np.negative)}, batch=batch)
    assert list(refitting(after, moved)._old_feeds_of_batch({"z": z})) == ["x", "v"]
    with pytest.raises(RuntimeFailure, match=r"^input '' does not follow$"):
        refitting(after, moved)._new_feeds({"x": z, "v": z})
    converted_only = InterfaceMap({"z": ("x", np.negative)}, batch=batch)
    with pytest.raises(RuntimeFailure, match=r"^input 'x' of the model before does not follow$"):
        refitting(after, converted_only)._old_feeds_of_batch({"z": z})


def test_why_a_new_interface_cannot_be_compared_is_said() -> None:
    with pytest.raises(RuntimeFailure, match=r"^it is another model$"):
        refitting(OLD, InterfaceMap(new="it is another model")).samples(Wanted())


def test_the_reference_runs_sequences_of_one_row_too() -> None:
    before = "(float[?,?] x) => (float[?,?] y) { y = Neg(x) }"
    relation = InterfaceMap(packed=PackMap(("x",), frozenset()))
    made = refitting("(float[2,3] x) => (float[2,3] y) { y = Neg(x) }", relation, before)
    made._fed = [{"x": np.array([[1, 2]], np.float32)}]
    assert made.expected_by_reference(0)["y"].tolist() == [[-1, -2, -2], [-1, -2, -1]]


def test_all_defaults_of_packed_rows_are_those_of_the_model() -> None:
    before = "(float[2] x, float[2] v) => (float[2] y) <float[2] v = {1, 2}> { y = Mul(x, v) }"
    for relation, fed in (
        (InterfaceMap(packed=PackMap(("x",), frozenset())), ["x"]),
        (InterfaceMap(), ["x", "v"]),
    ):
        made = refitting(before, relation, before)
        assert [list(feeds) for feeds in made._fed] == [fed]
        assert [list(feeds) for feeds in made._given] == [fed]


def test_a_batch_of_given_samples_alone_has_twice_the_size(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: object) -> Any:
        raise RuntimeFailure("no inputs were found")

    monkeypatch.setattr("tiered.verify.refitted.samples_for", refuses)
    before = "(float[2] x) => (float[2] y) { y = Neg(x) }"
    batch = BatchMap(2, {"x": 0}, {"y": (0, 1, 1)})
    made = refitting(before.replace("[2]", "[4]"), InterfaceMap(batch=batch), before)
    samples, expected = made.samples(Wanted())
    assert [sample.label for sample in samples] == ["given samples, each by itself"]
    assert [sample.inputs.feeds["x"].tolist() for sample in samples] == [[1, 2, 1, 2]]
    assert [outputs["y"].tolist() for outputs in expected] == [[-1, -2, -1, -2]]
    made._given.clear()
    with pytest.raises(RuntimeFailure, match="no inputs were found"):
        made.samples(Wanted())


def test_rows_of_given_samples_are_given() -> None:
    before = "(float[?,?] x) => (float[?,?] y) { y = Neg(x) }"
    relation = InterfaceMap(packed=PackMap(("x",), frozenset()))
    made = refitting("(float[2,3] x) => (float[2,3] y) { y = Neg(x) }", relation, before)
    made._before.samples = made._before.samples[:1]
    made._fed = [{"x": np.array([[1, 2]], np.float32)}]
    for rules, expected in (({"x": "given"}, True), ({"x": "drawn"}, False)):
        made._before.samples[0] = Sample("s", Inputs({}, rules))
        samples, _ = made.samples(Wanted())
        assert [sample.is_given for sample in samples] == [expected]


def test_what_onnxruntime_refused_the_reference_runs() -> None:
    here, worker = in_process()
    made = refitting(OLD, InterfaceMap())
    made._worker = worker
    for refused, reference, runtime in (
        ("", False, "onnxruntime"), ("", True, "reference"), ("no kernel", False, "reference"),
    ):  # fmt: skip
        made._before.refused = refused
        (values,) = made._run(["y", "x"], made._fed, reference=reference)
        assert values["y"].tolist() == [-3, -8]
        assert here.how[-1]["runtime"] == runtime
