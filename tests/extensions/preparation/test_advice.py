"""The doctor: the fewest remedies with the fewest refused nodes, each tried in memory."""

from pathlib import Path

import onnx
import pytest

from tests.small import parsed
from tiered import Backend
from tiered.extensions.preparation.advice import _clashes, _is_smaller, diagnose, doctor
from tiered.extensions.preparation.remedies import Remedy
from tiered.graph import DataType, Model
from tiered.pipeline.result import ModelStatistics
from tiered.support.errors import BackendNotFoundError, ModelError
from tiered.targets.operator_rule import Bounds, OperatorRule

TEXT = "(float[N,2] x) => (float[N,2] y) { a = Relu(x)  y = Erf(a) }"


def target(*operators: str, **more: object) -> Backend:
    rules = {("", each): (OperatorRule(),) for each in operators}
    return Backend(name="npu", operators=rules, **more)  # type: ignore[arg-type]  # of any


def whats(model: Model, backend: Backend) -> list[str]:
    return [each.what for each in diagnose(model, backend=backend, opt_level=0).remedies]


def test_a_legal_model_needs_nothing_and_stays_as_it_is() -> None:
    model = parsed(TEXT)
    before = model.to_proto()
    found = diagnose(model, backend=target("Relu", "Erf"), opt_level=0)
    assert (found.is_legal, found.remedies, found.failed) == (True, (), ())
    assert (found.backend, found.complaint, found.complaint_after) == ("npu", "", "")
    assert found.statistics == ModelStatistics.of(model)
    assert model.to_proto() == before


def test_what_the_target_cannot_do_without_is_chosen() -> None:
    old = target("Relu", "Erf", opset=Bounds(13, 17))
    assert whats(parsed(TEXT, opset=21), old) == ["opset 17"]
    assert whats(parsed(TEXT), target("Relu", "Erf", shapes="static")) == ["fix dims"]
    both = target("Relu", "Erf", shapes="static", opset=Bounds(13, 17))
    assert whats(parsed(TEXT), both) == ["opset 17", "fix dims"]


def test_what_does_not_help_is_left_out() -> None:
    found = diagnose(parsed(TEXT), backend=target("Relu"), opt_level=0)
    assert found.remedies == ()
    assert not found.is_legal_after
    assert found.has_a_way


def test_a_remedy_that_fails_is_named_once() -> None:
    text = "(int64[2] x) => (int64[2] y) { a = Abs(x)  y = Neg(a) }"
    ints = Backend(name="npu", unlisted="standard", activations=frozenset({DataType.INT32}))
    found = diagnose(parsed(text), backend=ints, opt_level=0)
    assert found.remedies == ()
    assert [each.split(":")[0] for each in found.failed] == ["quantise first", "int64 to int32"]
    assert "not proven to fit int32" in found.failed[1]


def test_a_remedy_that_cannot_be_tried_is_told() -> None:
    model = parsed("(float[2] x) => (float[2] y) { y = Gelu(x) }", opset=20)
    found = diagnose(model, backend=target("Gelu", opset=Bounds(13, 17)), opt_level=0)
    assert any(each.startswith("opset 17: ") for each in found.failed)


def test_steps_are_said() -> None:
    said: list[str] = []
    diagnose(parsed(TEXT), backend=target("Relu", "Erf"), opt_level=0, on_step=said.append)
    assert said[0] == "trying the passes of the target"
    said.clear()
    static = target("Relu", "Erf", shapes="static")
    diagnose(parsed(TEXT), backend=static, opt_level=0, on_step=said.append)
    assert said[0] == "trying: fix dims"


def test_a_file_is_named_in_the_commands(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    proto = parsed(TEXT).to_proto()
    onnx.save(proto, path)
    backend = target("Relu", "Erf", shapes="static")
    found = doctor(path, backend=backend, opt_level=0)
    assert found.source == str(path)
    assert str(path) in found.commands()[0]
    of_proto = doctor(proto, backend=backend, opt_level=0)
    assert (of_proto.source, proto) == ("", parsed(TEXT).to_proto())


def test_what_cannot_be_read_or_is_no_target_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError):
        doctor(tmp_path / "none.onnx")
    with pytest.raises(BackendNotFoundError):
        doctor(parsed(TEXT).to_proto(), backend="no_such_target")


@pytest.mark.parametrize(
    ("nodes", "nbytes", "is_smaller"),
    [
        ((100, 100), (1000, 991), False),
        ((100, 100), (1000, 990), True),
        ((100, 99), (1000, 1000), False),
        ((100, 98), (1000, 1000), True),
        ((100, 98), (1000, 1001), False),
        ((100, 101), (1000, 900), True),
    ],
)
def test_a_hundredth_of_the_bytes_or_nodes_is_a_gain(
    nodes: tuple[int, int], nbytes: tuple[int, int], *, is_smaller: bool
) -> None:
    before, after = (
        ModelStatistics(count, {}, 0, size) for count, size in zip(nodes, nbytes, strict=True)
    )
    assert _is_smaller(before, after) == is_smaller


def test_remedies_clash_that_set_the_same_but_conversions() -> None:
    opset, other = Remedy("a", "", {"opset": 17}), Remedy("b", "", {"opset": 21, "ir": 10})
    half, ints = Remedy("c", "", {"to": ("fp16",)}), Remedy("d", "", {"to": ("int32",)})
    assert _clashes(opset, [half, other])
    assert not _clashes(opset, [half])
    assert not _clashes(half, [ints])
    assert not _clashes(opset, [])


def test_smaller_results_are_suggested() -> None:
    text = """(float[2,2] x) => (float[2,2] y) {
        a = Identity(x)  b = Identity(a)  c = Identity(b)  y = Relu(c) }"""
    found = diagnose(parsed(text), backend=target("Relu", "Identity"), opt_level=2)
    first = found.suggestions[0]
    assert (first.what, first.why, first.error) == ("optimise", "", "")
    assert (first.before.nodes, first.after.nodes) == (4, 1)
    assert first.line == "tiered prepare model.onnx out.onnx --for npu -O2"
