"""What two models become as one, or why they do not, as text."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import onnx

import tiered
from tests.recorded import assert_recorded
from tiered import Model, TieredError
from tiered.testing import parse


def test_two_models_as_one() -> None:
    assert_recorded(Path(__file__).with_name("merged_models.txt"), {"=": _merged})


def _merged(header: str, below: list[str]) -> Iterator[str]:
    first, second = (line for line in below if line and not line.startswith("  "))
    yield from (first, second)
    try:
        made = tiered.merge(parse(first), parse(second), **ast.literal_eval(header))
    except TieredError as error:
        yield f"  {type(error).__name__}: {error}"
    else:
        yield from _written(made)
    yield ""


def _written(proto: onnx.ModelProto) -> Iterator[str]:
    main = Model.from_proto(proto).main
    inputs, outputs = (
        ", ".join(f"{value.type} {value.name}" for value in values)
        for values in (main.inputs, main.outputs)
    )
    weights = ", ".join(f"{each.name} {[*each.float_data]}" for each in proto.graph.initializer)
    declared = ", ".join(info.name for info in proto.graph.value_info)
    imports = {entry.domain: entry.version for entry in proto.opset_import}
    yield f"  ir {proto.ir_version} {imports} ({inputs}) => ({outputs}) <{weights}> {declared}"
    yield from _nodes(proto.graph.node, "  ")
    for function in proto.functions:
        yield f"  {function.domain}.{function.name}"
        yield from _nodes(function.node, "    ")


def _nodes(nodes: Iterable[onnx.NodeProto], indent: str) -> Iterator[str]:
    for node in nodes:
        called = f"{node.domain}.{node.op_type}".removeprefix(".")
        yield f"{indent}[{node.name}] {', '.join(node.output)} = {called}({', '.join(node.input)})"
        for attribute in node.attribute:
            yield from _nodes(attribute.g.node, f"{indent}  ")
