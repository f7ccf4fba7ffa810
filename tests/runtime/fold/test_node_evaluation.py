"""Evaluation of constants: many in a session, around those that fail, and what they free."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tests.small import loaded_apart, named, parsed
from tiered import Model, Value
from tiered.rewriter.skip import Skip
from tiered.runtime import session as sessions
from tiered.runtime.fold import node_evaluation as evaluation
from tiered.runtime.fold.node_evaluation import (
    ancestors,
    evaluate,
    evaluate_in_sessions,
    freed_bytes,
)
from tiered.runtime.worker import client
from tiered.support.errors import RuntimeFailure
from tiered.testing import parse

# Sums and products: numpy moves elements only, so that onnxruntime computes these.
TEXT = """(float[2] x) => (float[2] y) <float[2] w = {1,2}, float[2] v = {3,4}> {
    a = Neg(w)  b = Add(a, v)  c = Mul(b, w)  t = Identity(v)  y = Add(x, c) }"""


class Runs:
    """Runs models here, and fails where a node of some operator is in one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.models: list[onnx.ModelProto] = []
        self.feeds: list[Mapping[str, Any]] = []
        self.fails = ""
        self._run = sessions.run
        monkeypatch.setattr(sessions, "run", self.run)

    def run(self, model: onnx.ModelProto, feeds: Mapping[str, Any]) -> dict[str, Any]:
        self.models.append(model)
        self.feeds.append(feeds)
        if any(node.op_type == self.fails for node in model.graph.node):
            raise RuntimeFailure(f"no {self.fails}")
        return self._run(model, feeds)

    @property
    def wanted(self) -> list[list[str]]:
        return [[info.name for info in model.graph.output] for model in self.models]


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    return Runs(monkeypatch)


def values(model: Model, names: str) -> list[Value]:
    return [named(model, name) for name in names]


def numbers(found: Mapping[Value, Any]) -> dict[str, Any]:
    return {value.name: array.tolist() for value, array in found.items()}


def unexpected(value: Value, error: RuntimeFailure) -> None:
    raise AssertionError(f"{value.name}: {error}")


def test_values_are_computed_in_one_session(runs: Runs) -> None:
    found = evaluate(values(parsed(TEXT), "bac"), unexpected)
    assert numbers(found) == {"a": [-1, -2], "b": [2, 2], "c": [2, 4]}
    assert runs.wanted == [["b", "a", "c"]]
    (model,) = runs.models
    assert [node.output[0] for node in model.graph.node] == ["a", "b", "c"]
    assert {tensor.name for tensor in model.graph.initializer} == {"w", "v"}
    assert not any(node.name for node in model.graph.node)


def test_what_only_moves_needs_no_session(runs: Runs) -> None:
    assert numbers(evaluate(values(parsed(TEXT), "t"), unexpected)) == {"t": [3, 4]}
    assert runs.models == []
    found = evaluate(values(parsed(TEXT), "ta"), unexpected)
    assert numbers(found) == {"t": [3, 4], "a": [-1, -2]}
    assert runs.wanted == [["a"]]


def test_where_one_fails_the_others_are_computed(runs: Runs) -> None:
    model = parsed(
        """(float x) => (float y) <float[2] w = {1,2}> {
            a = Neg(w)  b = Abs(w)  c = Exp(w)  d = Add(w, w)  e = Sub(w, w)  y = Neg(x) }"""
    )
    failed: dict[str, str] = {}
    runs.fails = "Exp"
    found = evaluate(
        values(model, "abcde"), lambda value, error: failed.update({value.name: str(error)})
    )
    assert set(numbers(found)) == {"a", "b", "d", "e"}
    assert failed == {"c": "no Exp"}
    assert runs.wanted == [list("abcde"), ["a", "b"], ["c", "d", "e"], ["c"], ["d", "e"]]


def test_a_node_that_may_end_the_process_runs_in_another_one(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    apart: list[tuple[list[str], dict[str, Any]]] = []

    class Other:
        def __init__(self, **limits: Any) -> None:
            self.limits = limits

        def __enter__(self) -> Any:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def run(self, model: onnx.ModelProto, feeds: Mapping[str, Any]) -> dict[str, Any]:
            apart.append(([info.name for info in model.graph.output], self.limits))
            return runs._run(model, feeds)

    monkeypatch.setattr(client, "Worker", Other)
    model = parsed(
        """(float x) => (float y) <float[1,1,4] w = {1,5,2,3}> {
            a = Neg(w)  b = MaxPool<kernel_shape = [2]>(a)  c = Abs(b)  y = Neg(x) }"""
    )
    found = evaluate(values(model, "abc"), unexpected)
    assert numbers(found) == {
        "a": [[[-1, -5, -2, -3]]], "b": [[[-1, -2, -2]]], "c": [[[1, 2, 2]]]
    }  # fmt: skip
    assert apart == [(["b", "c"], {"seconds": 20.0, "memory": 4 << 30})]
    assert runs.wanted == [["a"]]


def test_large_constants_are_fed_and_not_copied(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluation, "_FED", 8)
    evaluate(values(parsed(TEXT), "a"), unexpected)
    (model,) = runs.models
    assert [info.name for info in model.graph.input] == ["w"]
    assert not model.graph.initializer
    assert runs.feeds[0]["w"].tolist() == [1, 2]
    monkeypatch.setattr(evaluation, "_FED", 9)
    evaluate(values(parsed(TEXT), "a"), unexpected)
    assert not runs.models[1].graph.input
    assert runs.feeds[1] == {}


@pytest.mark.parametrize(("given", "expected"), [(3, 4), (4, 4), (10, 10), (13, 13), (14, 13)])
def test_the_ir_version_is_one_that_onnxruntime_takes(
    runs: Runs, given: int, expected: int
) -> None:
    proto = parse("(float x) => (float y) { k = Constant<value_float = 1.0>()  a = Neg(k)"
                  "  y = Add(x, a) }")  # fmt: skip
    proto.ir_version = given
    evaluate(values(Model.from_proto(proto), "a"), unexpected)
    assert runs.models[0].ir_version == expected


def test_the_opset_is_that_of_the_model(runs: Runs) -> None:
    for opset in (13, 21):
        evaluate(values(parsed(TEXT, opset=opset), "a"), unexpected)
    assert [model.opset_import[0].version for model in runs.models] == [13, 21]


def test_bodies_and_what_they_capture_are_computed(runs: Runs) -> None:
    model = parsed(
        """(float x) => (float y) <bool c = {1}, float[2] w = {1,2}> {
            a = Neg(w)
            b = If(c)<then_branch = t () => (float[2] p) { p = Abs(a) },
                      else_branch = e () => (float[2] q) { q = Exp(w) }>  y = Neg(x) }"""
    )
    nodes, constants = ancestors(values(model, "b"))
    assert [node.output.name for node in nodes] == ["a", "b"]
    assert {value.name for value in constants} == {"c", "w"}
    assert runs.models == []


def test_ancestors_are_in_order_and_once() -> None:
    model = parsed(TEXT)
    nodes, constants = ancestors(values(model, "cba"))
    assert [node.output.name for node in nodes] == ["a", "b", "c"]
    assert [value.name for value in constants] == ["w", "v"]
    assert ancestors(values(model, "w")) == ([], [])


# --- sessions -------------------------------------------------------------------------------------


def test_sessions_hold_so_many_bytes(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "_LARGEST_SESSION", 16)
    model = parsed(TEXT)
    wanted = values(model, "abc")
    sizes = dict.fromkeys(wanted, 8)
    found = dict(evaluate_in_sessions(wanted, sizes, lambda *_: None))
    assert numbers(found) == {"a": [-1, -2], "b": [2, 2], "c": [2, 4]}
    assert runs.wanted == [["a", "b"], ["c"]]
    sizes[wanted[0]] = 99
    list(evaluate_in_sessions(wanted, sizes, lambda *_: None))
    assert runs.wanted[2:] == [["a"], ["b", "c"]]
    assert list(evaluate_in_sessions([], sizes, lambda *_: None)) == []


def test_what_cannot_be_computed_is_refused_with_its_reason(runs: Runs) -> None:
    runs.fails = "Neg"
    refused: dict[str, str] = {}

    def refuse(value: Value, reason: Skip) -> None:
        refused[value.name] = str(reason)

    wanted = values(parsed(TEXT), "a")
    assert list(evaluate_in_sessions(wanted, {wanted[0]: 8}, refuse)) == []
    assert refused == {"a": "no Neg"}


# --- what is freed --------------------------------------------------------------------------------


def freed(text: str, name: str = "b", reach: int = 64) -> int:
    return freed_bytes(named(parsed(text), name), reach)


def size_of(text: str, *names: str) -> int:
    model = parsed(text)
    nodes = {node for name in names if (node := named(model, name).producer) is not None}
    return sum(node.proto.ByteSize() for node in nodes)


HEAD = "(float[2] x) => (float[2] y) <float[2] w = {1,2}, float[2] v = {3,4}>"


def test_nodes_and_constants_without_another_use_are_freed() -> None:
    text = f"{HEAD} {{ a = Neg(w)  b = Add(a, v)  y = Add(x, b) }}"
    assert freed(text) == size_of(text, "a", "b") + 16
    shared = f"{HEAD} {{ a = Neg(w)  b = Add(a, v)  c = Add(x, b)  y = Add(c, v) }}"
    assert freed(shared) == size_of(shared, "a", "b") + 8
    kept = f"{HEAD} {{ a = Neg(w)  b = Add(a, v)  c = Add(a, x)  y = Add(c, b) }}"
    assert freed(kept) == size_of(kept, "b") + 8
    twice = f"{HEAD} {{ b = Add(w, w)  y = Add(x, b) }}"
    assert freed(twice) == size_of(twice, "b") + 8


def test_outputs_are_not_freed() -> None:
    text = HEAD.replace("y)", "y, float[2] a)") + " { a = Neg(w)  b = Add(a, v)  y = Add(x, b) }"
    assert freed(text) == size_of(text, "b") + 8


def test_a_node_whose_other_outputs_are_read_is_not_freed() -> None:
    split = (
        f"{HEAD} {{ b, c = Split<axis = 0, num_outputs = 2>(w)  d = Add(x, b)  y = Add(d, OTHER) }}"
    )
    assert freed(split.replace("OTHER", "c")) == 0
    assert freed(split.replace("OTHER", "x")) == size_of(split.replace("OTHER", "x"), "b") + 8
    behind = split.replace("b, c", "a, c").replace("d = ", "b = Abs(a)  d = ")
    for other, names in (("c", "b"), ("x", "ab")):
        text = behind.replace("OTHER", other)
        assert freed(text) == size_of(text, *names) + (8 if other == "x" else 0)


def test_only_so_many_nodes_are_looked_at() -> None:
    text = f"{HEAD} {{ a = Neg(w)  b = Abs(a)  y = Add(x, b) }}"
    assert freed(text, reach=1) == size_of(text, "b")
    assert freed(text, reach=2) == size_of(text, "a", "b") + 8
    assert freed(text, reach=0) == 0
    assert freed(text, "x") == 0


def test_a_result_is_an_array() -> None:
    (array,) = evaluate(values(parsed(TEXT), "a"), unexpected).values()
    assert isinstance(array, np.ndarray)
    assert array.dtype == np.float32


@pytest.mark.parametrize(
    ("outputs", "nodes", "others"),
    [
        ("float[2] y", "b = Clip(w, , k)", "bwk"),
        ("float[2] y, float q", "b, q = MaxPool<kernel_shape = [1]>(t)", ""),
        ("float[2] y", "b, q = MaxPool<kernel_shape = [1]>(t)", "bt"),
        ("float[2] y", "b, , q = Unique(w)", "bw"),
    ],
)
def test_what_is_absent_or_kept_frees_nothing(outputs: str, nodes: str, others: str) -> None:
    sizes = {"w": 8, "k": 4, "t": 8}
    text = f"""(float[2] x) => ({outputs}) <float[2] w = {{1,2}}, float k = {{3}},
        float[1,1,2] t = {{1,2}}> {{ {nodes}  y = Add(x, b) }}"""
    expected = sum(sizes[name] for name in others if name in sizes)
    assert freed(text) == expected + (size_of(text, "b") if "b" in others else 0)


def test_inputs_are_not_freed_and_a_value_is_even_if_it_is_an_output() -> None:
    for text, name, constants in (
        (f"{HEAD} {{ b = Neg(x)  y = Abs(b) }}", "b", 0),
        (f"{HEAD} {{ y = Add(w, v)  z = Neg(x) }}", "y", 16),
    ):
        assert freed(text, name) == size_of(text, name) + constants


def test_a_node_with_an_output_that_an_annotation_names_is_not_freed() -> None:
    proto = parse(f"{HEAD} {{ b, c = Split<axis = 0, num_outputs = 2>(w)  y = Add(x, b) }}")
    assert freed_bytes(named(Model.from_proto(proto), "b")) > 0
    pinned = proto.graph.quantization_annotation.add(tensor_name="v")
    pinned.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="c")
    assert freed_bytes(named(Model.from_proto(proto), "b")) == 0


def test_what_an_annotation_names_is_not_freed() -> None:
    proto = parse(f"{HEAD} {{ a = Neg(w)  b = Add(a, v)  y = Add(x, b) }}")
    pinned = proto.graph.quantization_annotation.add(tensor_name="b")
    for name, count in (("v", 8), ("a", 8)):
        del pinned.quant_parameter_tensor_names[:]
        pinned.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value=name)
        model = Model.from_proto(proto)
        nodes = {"v": ("a", "b"), "a": ("b",)}[name]
        size = sum(node.proto.ByteSize() for node in model.main.nodes if node.output.name in nodes)
        assert freed_bytes(named(model, "b")) == size + count, name


def test_the_body_of_a_node_is_computed_as_it_is_now() -> None:
    model = parsed(
        """(float x) => (float y) <bool c = {1}, float[2] w = {1,-2}> { y = Neg(x)
            a = If(c)<then_branch = t () => (float[2] p) { p = Neg(w) },
                      else_branch = e () => (float[2] q) { q = Exp(w) }> }"""
    )
    value = named(model, "a")
    assert value.producer is not None
    body = value.producer.bodies[0]
    body.set_operator(body.nodes[0], "Abs")
    assert evaluation._evaluate([value], unexpected, sessions.run)[value].tolist() == [1, 2]
    assert evaluation._evaluate([], unexpected, sessions.run) == {}


def test_weights_on_disk_are_read(tmp_path: Path, runs: Runs) -> None:
    given = parse("(float[2] x) => (float[2] y) <float[2] w = {1,2}> { a = Neg(w)  y = Add(x, a) }")
    model = loaded_apart(given, tmp_path)
    assert numbers(evaluate(values(model, "a"), unexpected)) == {"a": [-1, -2]}
    (made,) = runs.models
    assert [tensor.data_location for tensor in made.graph.initializer] == [0]
