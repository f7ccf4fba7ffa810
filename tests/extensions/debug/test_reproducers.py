"""From a blamed rewrite to the smallest part of the model that still shows the failure."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tests.small import failing
from tiered import Backend, Graph, PassContext, Value, function_pass, op, rewrite, var
from tiered.extensions.debug import (
    OutputOracle,
    Subject,
    bisect,
    reproduce,
    reproducers,
    write_reproducer,
)
from tiered.extensions.debug.bundle import Failure
from tiered.extensions.debug.reproducers import (
    STEPS,
    _kinds,
    _parts,
    _plain,
    _reduced,
    _whole,
    sample_of,
)
from tiered.support.errors import ModelError, PassError
from tiered.testing import parse
from tiered.verify.part_extraction import GraphPart

CHAIN = "(float[4] x) => (float[4] y) { %s y = Neg(v11) }" % " ".join(  # noqa: UP031  # braces
    f"v{at} = {'Cos' if at == 6 else 'Sin'}({f'v{at - 1}' if at else 'x'})" for at in range(12)
)
FEEDS = {"x": np.array([1, 2, 3, 4], np.float32)}


@rewrite(op.Cos(var.x), opt_level=1)
def cos_to_sin(graph: Graph, x: Value) -> Value:
    """Wrong: Cos(x) => Tanh(x)."""
    made: Value = graph.op.Tanh(x)
    return made


def test_the_smallest_part_around_the_rewrite_is_enough() -> None:
    subject = Subject(parse(CHAIN), [cos_to_sin])
    blame = bisect(parse(CHAIN), passes=[cos_to_sin])
    assert blame is not None
    bundle = reproduce(subject, blame, FEEDS)
    # The node that was rewritten, what it reads, and what reads it.
    assert [node.op_type for node in bundle.before.graph.node] == ["Sin", "Cos", "Sin"]
    assert bundle.after is not None
    assert [node.op_type for node in bundle.after.graph.node] == ["Sin", "Tanh", "Sin"]
    assert bundle.failure.nodes == (3, 13)
    # The part is fed what the whole model has there: five sines before.
    value = FEEDS["x"]
    for _ in range(5):
        value = np.sin(value)
    (name,) = bundle.feeds
    np.testing.assert_allclose(bundle.feeds[name], value, rtol=1e-5)


def test_what_is_known_of_the_failure_is_written_down() -> None:
    subject = Subject(parse(CHAIN), [cos_to_sin], {"opt_level": 2, "disabled": ["fuse_gelu"]})
    blame = bisect(parse(CHAIN), passes=[cos_to_sin])
    assert blame is not None
    found = reproduce(subject, blame, FEEDS).failure
    assert (found.kind, found.pass_text, found.number) == ("outputs", "cos_to_sin", 1)
    assert found.numerics == "exact"
    assert found.settings == {"opt_level": 2, "disabled": ["fuse_gelu"]}
    assert found.model == ""
    assert found.pass_source.startswith("test_reproducers.py:")
    assert found.shown


def test_a_pass_that_looks_further_needs_a_larger_part() -> None:
    @function_pass(opt_level=1)
    def far(graph: Graph, ctx: PassContext) -> None:
        """Wrong if there are at least three Sins around."""
        nodes = graph.nodes_of("Cos")
        if nodes and len(graph.nodes_of("Sin")) >= 3:
            with graph.rewrite("Cos(x)  =>  Tanh(x)", nodes[0]):
                graph.replace(nodes[0], (graph.op.Tanh(nodes[0].input(0)),))

    blame = bisect(parse(CHAIN), passes=[far])
    assert blame is not None
    bundle = reproduce(Subject(parse(CHAIN), [far]), blame, FEEDS)
    kinds = [node.op_type for node in bundle.before.graph.node]
    assert kinds.count("Cos") == 1
    assert 3 <= kinds.count("Sin") < 11


def test_a_pass_that_raises_is_shown_on_a_small_model() -> None:
    pass_ = failing(ValueError("no"))
    blame = bisect(parse(CHAIN), passes=[pass_])
    assert blame is not None
    bundle = reproduce(Subject(parse(CHAIN), [pass_]), blame, FEEDS)
    assert bundle.failure.kind == "error"
    assert "ValueError" in bundle.failure.shown
    assert len(bundle.before.graph.node) < 13
    assert set(bundle.feeds) <= {"x"}


# --- its parts ------------------------------------------------------------------------------------


def test_parts_grow_and_the_whole_is_not_among_them() -> None:
    part = GraphPart.of(parse(CHAIN))
    sizes = [len(nodes) for nodes in _parts(part, ("v6",))]
    assert sizes == sorted(set(sizes))
    assert sizes[0] == len(part.around(("v6",), STEPS[0]))
    assert 0 < sizes[0] < 13
    assert all(size < 13 for size in sizes)
    assert STEPS == (0, 1, 2, 4, 8, 16)


@pytest.mark.parametrize("places", [(), ("no_such_value",)])
def test_without_places_there_are_no_parts(places: tuple[str, ...]) -> None:
    assert list(_parts(GraphPart.of(parse(CHAIN)), places)) == []


def test_of_a_model_of_one_node_there_is_no_smaller_part() -> None:
    part = GraphPart.of(parse("(float[2] x) => (float[2] y) { y = Neg(x) }"))
    assert list(_parts(part, ("y",))) == []


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({}, {}),
        ({"opt_level": 3, "strict": False, "instruments": [1]}, {"opt_level": 3, "strict": False}),
        ({"required": (), "disabled": []}, {}),
        ({"required": ["a"], "disabled": ("b",)}, {"required": ["a"], "disabled": ["b"]}),
        ({"backend": Backend(name="npu", unlisted="standard")}, {"backend": "npu"}),
        ({"backend": "npu.toml"}, {"backend": "npu.toml"}),
        ({"backend": None, "config": {"verify.seconds": 1.0}}, {"config": {"verify.seconds": 1.0}}),
    ],
)
def test_settings_are_plain_data(settings: dict[str, Any], found: dict[str, Any]) -> None:
    assert _plain(settings) == found


@pytest.mark.parametrize(
    ("message", "kinds"),
    [
        ("ValueError: no", ("ValueError",)),
        ("PassError: a raised ModelError at 'MyErrors'", ("PassError", "ModelError")),
        ("an AssertionException", ("AssertionException",)),
        ("Error", ()),
        ("errors all around", ()),
    ],
)
def test_kinds_of_errors_are_read_from_a_message(message: str, kinds: tuple[str, ...]) -> None:
    assert _kinds(message) == kinds


# --- writing --------------------------------------------------------------------------------------


def test_a_bundle_is_written_if_something_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(parse(CHAIN), path)
    blame = write_reproducer(path, tmp_path / "b", passes=[cos_to_sin], inputs=[FEEDS])
    assert blame is not None
    assert (blame.pass_name, blame.number) == ("cos_to_sin", 1)
    assert (tmp_path / "b" / "before.onnx").exists()
    assert write_reproducer(path, tmp_path / "c", passes=["eliminate_identity"]) is None
    assert not (tmp_path / "c").exists()


def test_the_suspects_may_be_known(tmp_path: Path) -> None:
    text = CHAIN.replace("y = Neg(v11)", "c = Cos(v11)  y = Neg(c)")
    whole = write_reproducer(parse(text), tmp_path / "a", passes=[cos_to_sin], inputs=[FEEDS])
    later = write_reproducer(
        parse(text), tmp_path / "b", passes=[cos_to_sin], inputs=[FEEDS], within=(2, 2)
    )
    assert whole is not None
    assert later is not None
    # The first rewrite is not looked at: models are compared with the one after it.
    assert (whole.number, later.number) == (1, 2)


def test_the_inputs_are_those_of_the_oracle_or_made() -> None:
    subject = Subject(parse(CHAIN), [cos_to_sin])
    oracle = OutputOracle(parse(CHAIN), [FEEDS])
    np.testing.assert_array_equal(sample_of(oracle, subject)["x"], FEEDS["x"])
    made = sample_of("a command", subject, 3)
    assert made["x"].shape == (4,)


NEG = parse("(float[2] x) => (float[2] y) { y = Neg(x) }")
ANY: Any = None


def of_kind(kind: str) -> Failure:
    return Failure(kind, "p", "whole", "", "exact", 1, "", "", (), (), nodes=(0, 9))


def test_a_smaller_model_fails_in_the_same_way_and_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = "PassError: p failed: ValueError: first"
    other = "PassError: q failed: ValueError: other"
    for found, now, expected, said in (
        (other, 0.0, True, other),
        ("PassError: p failed: KeyError: first", 0.0, False, shown),
        ("", 0.0, False, shown), (ModelError("no model"), 0.0, False, shown),
        (other, 1e9, False, shown),
    ):  # fmt: skip
        answers: list[bool] = []
        times = [0.0, now]

        def symptom_of(*_: Any, found: Any = found) -> Any:
            if isinstance(found, Exception):
                raise found
            return found, None

        def reduce_model(model: Any, is_failing: Any, answers: list[bool] = answers) -> Any:
            answers.append(is_failing(model))
            return "smaller"

        monkeypatch.setattr(reproducers, "symptom_of", symptom_of)
        monkeypatch.setattr(reproducers, "reduce_model", reduce_model)
        monkeypatch.setattr("time.monotonic", lambda times=times: times.pop(0))
        made: tuple[Any, str] = _reduced(NEG, ANY, of_kind("error"), shown)
        assert made == ("smaller", said)
        assert answers == [expected]

    def cannot(*_: Any) -> Any:
        raise ModelError("it cannot be cut")

    monkeypatch.undo()
    monkeypatch.setattr(reproducers, "reduce_model", cannot)
    assert _reduced(NEG, ANY, of_kind("error"), shown) == (NEG, shown)


def test_the_whole_model_is_a_bundle_where_no_part_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reproducers, "_reduced", lambda made, *_: (made, "reduced"))
    feeds = {"x": np.ones(2, np.float32), "gone": np.ones(1)}
    for kind, found, shown, names in (
        ("outputs", ("it differs", NEG), "it differs", ["x", "gone"]),
        ("outputs", ("", NEG), "whole", ["x", "gone"]),
        ("outputs", PassError("it raises"), "it raises", ["x", "gone"]),
        ("error", ("ValueError: no", None), "reduced", ["x"]),
        ("error", ("", NEG), "whole", ["x", "gone"]),
    ):  # fmt: skip

        def symptom_of(*_: Any, found: Any = found) -> Any:
            if isinstance(found, Exception):
                raise found
            return found

        monkeypatch.setattr(reproducers, "symptom_of", symptom_of)
        made = _whole(NEG, "", ANY, of_kind(kind), feeds)
        assert (made.failure.shown, made.failure.nodes) == (shown, (1, 9))
        assert [*(made.feeds or ())] == names
        assert made.after == (found[1] if isinstance(found, tuple) else None)
