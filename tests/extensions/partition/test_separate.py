"""Separate models and their plan: run one after the other, they compute the whole bit for bit."""

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings

from tests.conformance.regions import faults
from tests.extensions.partition.graphs import assert_same_bits, model, random_models
from tests.small import loaded_apart
from tiered import Model, ModelError
from tiered.extensions.partition import OperatorSupport, Plan, as_models, propose_partitions
from tiered.extensions.partition.partitioner import Partition
from tiered.runtime import Session, make_inputs

NEG = OperatorSupport({"Neg": None, "Add": None, "If": None})


def _check(of: Model, folder: Path | None = None) -> Plan:
    """Split a model at what NEG takes, run the parts, and compare with the whole."""
    source = of.to_proto()
    plan = as_models(of, propose_partitions(of, {"npu": NEG}, allows_single_node_partition=True))
    assert of.to_proto() == source
    plan = plan.save(folder) if folder is not None else plan
    feeds = make_inputs(source).feeds
    assert_same_bits(Session(source).run(feeds), plan.run(feeds))
    for part in plan.parts:
        part.model.check()
    plan.host.check()
    return plan


@settings(max_examples=20, deadline=None)
@given(random_models(largest=10))
def test_parts_compute_the_whole_bit_for_bit(of: Model) -> None:
    _check(of)


SANDWICH = (
    "g (float[2] x) => (float[2] y, float[2] b) <float[2] w = {1,2}> "
    "{ a = Add(x, w)  b = Sin(a)  c = Neg(b)  d = Cos(c)  y = Sub(d, w) }"
)


def test_a_plan_says_who_feeds_whom(tmp_path: Path) -> None:
    plan = _check(model(SANDWICH), tmp_path)
    said = json.loads((tmp_path / "plan.json").read_text())
    assert said == plan.described()
    assert [(part.name, plan.sources(part)) for part in plan.parts] == [
        ("000_npu", {"x": ""}),
        ("001_host", {"a": "000_npu"}),
        ("002_npu", {"b": "001_host"}),
        ("003_host", {"c": "002_npu"}),
    ]
    assert [part.file for part in plan.parts][:2] == ["part_000_npu.onnx", "part_001_host.onnx"]


def test_each_part_has_the_weights_that_it_reads(tmp_path: Path) -> None:
    plan = _check(model(SANDWICH))
    held = [[value.name for value in part.model.main.initializers] for part in plan.parts]
    assert held == [["w"], [], [], ["w"]]


def test_the_host_model_calls_the_targets() -> None:
    host = _check(model(SANDWICH)).host.to_proto()
    said = [(node.domain, node.op_type, list(node.input)) for node in host.graph.node]
    assert said == [
        ("tiered.npu", "part_000_npu", ["x"]),
        ("", "Sin", ["a"]),
        ("tiered.npu", "part_002_npu", ["b"]),
        ("", "Cos", ["c"]),
        ("", "Sub", ["d", "w"]),
    ]
    marks = [entry.value for node in host.graph.node for entry in node.metadata_props]
    assert marks == ["npu", "npu"]
    assert {entry.domain for entry in host.opset_import} == {"", "tiered.npu"}


def test_outputs_that_no_node_computes_are_there() -> None:
    of = model(
        "g (float[2] x) => (float[2] x, float[2] w, float[2] k, float[2] y) <float[2] w = {1,2}> "
        "{ k = Constant<value_floats=[3.0, 4.0]>()  y = Neg(x) }"
    )
    plan = _check(of)
    assert plan.outputs == ("x", "w", "k", "y")


def test_a_constant_that_two_parts_read_is_in_both() -> None:
    of = model(
        "g (float[2] x) => (float[2] y) "
        "{ k = Constant<value_floats=[3.0, 4.0]>()  a = Add(x, k)  b = Sin(a)  y = Add(b, k) }"
    )
    plan = _check(of)
    assert [part.nodes for part in plan.parts] == [1, 1, 1]
    assert all(part.inputs == (name,) for part, name in zip(plan.parts, "xab", strict=True))


def test_an_input_with_a_default_may_be_fed_or_not() -> None:
    proto = model("g (float[2] x, float[2] s) => (float[2] y) { a = Add(x, s)  y = Sin(a) }")
    made = proto.to_proto()
    made.graph.initializer.append(onnx.helper.make_tensor("s", 1, [2], [1.0, 2.0]))
    of = Model.from_proto(made)
    plan = _check(of)
    assert (plan.inputs, plan.optional_inputs) == (("x",), ("s",))
    x, s = np.array([1, 2], np.float32), np.array([5, 6], np.float32)
    whole = Session(made)
    assert_same_bits(whole.run({"x": x, "s": s}), plan.run({"x": x, "s": s}))


def test_local_functions_go_where_they_are_called() -> None:
    of = model(
        "g (float[2] x) => (float[2] y) { a = Neg(x)  y = f.twice(a) }\n"
        '<opset_import: ["" : 21, "f" : 1], domain: "f"> twice (p) => (q) { q = f.sum(p, p) }\n'
        '<opset_import: ["" : 21], domain: "f"> sum (p, r) => (q) { q = Add(p, r) }',
        '<ir_version: 10, opset_import: ["" : 21, "f" : 1]>\n',
    )
    plan = _check(of)
    assert [len(part.model.functions) for part in plan.parts] == [0, 2]


def test_external_weights_stay_on_disk_and_are_written_beside_the_parts(tmp_path: Path) -> None:
    folder = tmp_path / "source"
    folder.mkdir()
    of = loaded_apart(model(SANDWICH).to_proto(), folder)
    parts = propose_partitions(of, {"npu": NEG}, allows_single_node_partition=True)
    plan = as_models(of, parts)
    tensors = [value.default for part in plan.parts for value in part.model.main.initializers]
    assert [tensor is not None and tensor.is_external for tensor in tensors] == [True, True]
    saved = plan.save(tmp_path / "parts")
    assert (tmp_path / "parts" / "part_000_npu.onnx.data").exists()
    feeds = {"x": np.array([1, -0.0], np.float32)}
    whole = Session(str(folder / "model.onnx")).run(feeds)
    assert_same_bits(whole, saved.run(feeds))
    assert_same_bits(whole, plan.run(feeds))


def test_a_value_of_unknown_type_between_two_parts_is_an_error() -> None:
    of = model(
        "g (float[2] x) => (float[2] y) { a = Neg(x)  b = u.F(a)  y = Neg(b) }",
        '<ir_version: 10, opset_import: ["" : 21, "u" : 1]>\n',
    )
    with pytest.raises(ModelError, match="'b', which 'b' computes, is between two parts"):
        as_models(of, propose_partitions(of, {"npu": NEG}, allows_single_node_partition=True))


def test_partitions_of_bodies_are_refused() -> None:
    of = model(
        "g (float[2] x, bool c) => (float[2] y) { a = Sin(x)  y = If <"
        "then_branch = t () => (float[2] p) { m = Neg(a)  p = Neg(m) }, "
        "else_branch = e () => (float[2] q) { q = Sin(a) }> (c) }"
    )
    (body, _) = of.main.body_nodes[0].bodies
    with pytest.raises(ModelError, match="bodies and functions cannot become models"):
        as_models(of, propose_partitions(body, NEG))


def test_training_info_and_dead_nodes_belong_to_no_part() -> None:
    of = model("g (float[2] x) => (float[2] y) { d = Cos(x)  y = Neg(x) }")
    assert [part.name for part in _check(of).parts] == ["000_npu"]


MODELS = sorted((Path(__file__).parents[3] / "examples" / "models").glob("*.onnx"))


@pytest.mark.parametrize("path", MODELS, ids=lambda path: str(path.name))
def test_regions_of_models_are_functions_and_models_with_the_same_bits(path: Path) -> None:
    assert faults(path, onnx.load(path), range(2)) == []


def built(
    text: str, *, ir: int = 10, declared: str = "", notes: str = "", sparse: str = ""
) -> Model:
    """Return a model with more declarations than its text has."""
    proto = onnx.parser.parse_model(f'<ir_version: {ir}, opset_import: ["" : 8, "f" : 1]>{text}')
    for node in proto.graph.node:
        node.name = node.name or node.output[0]
    for name in declared:
        proto.graph.value_info.append(onnx.helper.make_tensor_value_info(name, 1, ["N"]))
    for name in notes:
        annotation = proto.graph.quantization_annotation.add(tensor_name=name)
        annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="s")
    if sparse:
        values = onnx.helper.make_tensor(sparse, 1, [1], [5.0])
        index = onnx.helper.make_tensor("", 7, [1], [1])
        proto.graph.sparse_initializer.append(onnx.helper.make_sparse_tensor(values, index, [2]))
    return Model.from_proto(proto)


def contents(of: Model) -> str:
    proto = of.to_proto()
    graph = proto.graph

    def said(infos: Iterable[onnx.ValueInfoProto]) -> str:
        return " ".join(
            each.name
            + str([dim.dim_param or dim.dim_value for dim in each.type.tensor_type.shape.dim])
            for each in infos
        )

    calls = (
        f"{f'{node.domain}.' if node.domain else ''}{node.op_type}({' '.join(node.input)})"
        for node in graph.node
    )
    weights = [each.name for each in graph.initializer]
    weights += [f"{each.values.name} (sparse)" for each in graph.sparse_initializer]
    lists = {
        "declared": said(graph.value_info),
        "weights": " ".join(weights),
        "annotated": " ".join(each.tensor_name for each in graph.quantization_annotation),
        "functions": " ".join(each.name for each in proto.functions),
    }
    more = "".join(f"\n  {name} {text}" for name, text in lists.items() if text)
    return f"{said(graph.input)} -> {said(graph.output)}\n  {' '.join(calls)}{more}"


def test_all_that_parts_have() -> None:
    support = OperatorSupport(dict.fromkeys(("Neg", "Add", "Split")))
    twice = """
        <opset_import: ["" : 8], domain: "f"> one (p) => (q) { q = Sin(p) }
        <opset_import: ["" : 8, "f" : 1], domain: "f"> two (p) => (q) {
            r = f.one(p)  q = f.one(r) }"""
    for of, target, expected in (
        (built("""g (float[N] x) => (float[N] y, float[N] m) <float[1] s = {1}> {
            a = Neg(x)  b = Add(a, s)  c = Sin(b)  d = Cos(c)  y = Neg(d)  m = Add(y, y) }""",
               declared="abcd", notes="acx"), "npu", """\
000_npu npu: x['N'] -> b['N']
  Neg(x) Add(a s)
  declared a['N']
  weights s
  annotated a x
001_host host: b['N'] -> d['N']
  Sin(b) Cos(c)
  declared c['N']
002_npu npu: d['N'] -> y['N'] m['N']
  Neg(d) Add(y y)
host: x['N'] -> y['N'] m['N']
  tiered.npu.part_000_npu(x) Sin(b) Cos(c) tiered.npu.part_002_npu(d)"""),
        (built("""g (float[2] x) => (float[2] y) {
            a = Neg(x)  k = Constant<value=float[2] {1,2}>()  b = Add(a, k)  c = Sub(b, k)
            e = Mul(c, k)  y = Add(e, w) }""", sparse="w"), "", """\
000_part part: x[2] -> b[2]
  Constant() Neg(x) Add(a k)
001_host host: b[2] -> e[2]
  Constant() Sub(b k) Mul(c k)
002_part part: e[2] -> y[2]
  Add(e w)
  weights w (sparse)
host: x[2] -> y[2]
  Constant() tiered.part.part_000_part(x) Sub(b k) Mul(c k) tiered.part.part_002_part(e)"""),
        (built("""g (float[4] x) => (float[2] y, float[2] z) {
            a, b = Split(x)  c = Sin(a)  d = Cos(b)  y = Neg(c)  z = Neg(d) }"""), "my npu", """\
000_my_npu my npu: x[4] -> a[2] b[2]
  Split(x)
001_host host: a[2] b[2] -> c[2] d[2]
  Sin(a) Cos(b)
002_my_npu my npu: c[2] d[2] -> y[2] z[2]
  Neg(c) Neg(d)
host: x[4] -> y[2] z[2]
  tiered.my npu.part_000_my_npu(x) Sin(a) Cos(b) tiered.my npu.part_002_my_npu(c d)"""),
        (built("""g (float[2] x, float[2] w, float[2] v) => (float[2] y)
            <float[2] w = {1,2}, float[2] v = {3,4}, float[2] u = {5,6}> {
            a = Add(x, w)  b = Sub(a, v)  c = Add(b, u)  y = Add(c, v) }""", ir=3), "npu", """\
000_npu npu: x[2] w[2] -> a[2]
  Add(x w)
  weights w
001_host host: a[2] v[2] -> b[2]
  Sub(a v)
  weights v
002_npu npu: u[2] b[2] v[2] -> y[2]
  Add(b u) Add(c v)
  weights u v
host: x[2] w[2] v[2] -> y[2]
  tiered.npu.part_000_npu(x w) Sub(a v) tiered.npu.part_002_npu(b v)
  weights v w"""),
        (built("""g (float[2] x) => (float[2] y) {
            a = Neg(x)  b = f.one(a)  c = f.one(b)  d = f.two(c)  y = Neg(d) }""" + twice),
         "npu", """\
000_npu npu: x[2] -> a[2]
  Neg(x)
001_host host: a[2] -> d[2]
  f.one(a) f.one(b) f.two(c)
  functions one two
002_npu npu: d[2] -> y[2]
  Neg(d)
host: x[2] -> y[2]
  tiered.npu.part_000_npu(x) f.one(a) f.one(b) f.two(c) tiered.npu.part_002_npu(d)
  functions one two"""),
        (built("""g (float[2] x) => (float[2] y) <float[2] u = {5,6}> {
            a = Neg(x)  b, "" = Dropout(a)  c = Sub(b, u)  y = Neg(c) }""", ir=4), "npu", """\
000_npu npu: x[2] -> a[2]
  Neg(x)
001_host host: a[2] -> c[2]
  Dropout(a) Sub(b u)
  weights u
002_npu npu: c[2] -> y[2]
  Neg(c)
host: x[2] -> y[2]
  tiered.npu.part_000_npu(x) Dropout(a) Sub(b u) tiered.npu.part_002_npu(c)
  weights u"""),
    ):  # fmt: skip
        parts = propose_partitions(of, {target: support}, allows_single_node_partition=True)
        plan = as_models(of, parts)
        found = [f"{part.name} {part.target}: {contents(part.model)}" for part in plan.parts]
        assert "\n".join([*found, f"host: {contents(plan.host)}"]) == expected, target


def test_a_constant_inside_a_part_that_is_an_output_is_of_this_part() -> None:
    of = built("""g (float[2] x) => (float[2] y, float[2] k) {
        k = Constant<value=float[2] {1,2}>()  y = Add(x, k) }""")
    plan = as_models(of, [Partition(0, of.main.nodes, "npu")])
    assert [f"{part.name}: {contents(part.model)}" for part in plan.parts] == [
        "000_npu: x[2] -> k[2] y[2]\n  Constant() Add(x k)"
    ]
