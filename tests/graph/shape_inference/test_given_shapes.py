"""What `set_input_shapes` makes of a model's declarations, or why it refuses, as text."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import onnx

from tests.recorded import assert_recorded
from tests.small import parsed
from tiered import TieredError


def test_shapes_and_sizes_that_inputs_are_given() -> None:
    assert_recorded(Path(__file__).with_name("given_shapes.txt"), {"=": _outcomes})


def _outcomes(header: str, below: list[str]) -> Iterator[str]:
    text, *lines = (line for line in below if line and not line.startswith("  "))
    yield text
    for line in lines:
        yield line
        model = parsed(text, opset=int(header))
        mark = model.mark()
        try:
            model.set_input_shapes(*ast.literal_eval(line))
        except TieredError as error:
            said = str(error).partition(": [")[0]  # what onnx says is another text in each version
            yield f"  {type(error).__name__}: {said}"
            continue
        if not model.changed_since(mark):
            yield "  the same"
            continue
        graph = model.to_proto().graph
        given, made, known = map(_declared, (graph.input, graph.output, graph.value_info))
        yield f"  ({given}) => ({made}) <{known}>"
    yield ""


def _declared(infos: Iterable[onnx.ValueInfoProto]) -> str:
    shown = []
    for info in infos:
        shape = info.type.tensor_type.shape.dim
        sizes = [
            str(dim.dim_value) if dim.HasField("dim_value") else dim.dim_param for dim in shape
        ]
        shown.append(f"{info.name}[{','.join(size or '?' for size in sizes)}]")
    return ", ".join(shown)
