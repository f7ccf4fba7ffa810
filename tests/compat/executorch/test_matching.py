"""Patterns of torch.fx on graphs, models and protos."""

import onnx

from tests.recorded import assert_values
from tests.small import parsed
from tiered import Model
from tiered.compat.executorch.fx_graph import FxGraphModule
from tiered.compat.executorch.matching import (
    FxSubgraphMatcher,
    replace_pattern,
    replace_pattern_with_filters,
    view_of,
)

TEXT = "(float[2] x) => (float[2] y) { a = Neg(x) b = Neg(a) y = Abs(b) }"


def ops(of: Model | onnx.ModelProto) -> list[str]:
    """Return the operators of a model."""
    model = of if isinstance(of, Model) else Model.from_proto(of)
    return [node.op_type for node in model.main.topological_order()]


def test_a_pattern_is_replaced_in_what_is_given() -> None:
    module = FxGraphModule.of(parsed(TEXT))
    names = {
        "ops": ops,
        "model": parsed(TEXT),
        "graph": parsed(TEXT).main,
        "proto": parsed(TEXT).to_proto(),
        "module": module,
        "fx": module.graph,
        "twice": "(x) => (y) { a = Neg(x) y = Neg(a) }",
        "once": "(x) => (y) { y = Identity(x) }",
        "view_of": view_of,
        "matches": lambda pattern, graph: len(FxSubgraphMatcher(pattern).match(graph)),
        "replace": lambda *args: len(replace_pattern(*args)),
        "chosen": lambda *args: len(replace_pattern_with_filters(*args)),
    }
    assert_values(__file__, names)
