"""Attention where a mask hides all keys of some queries."""

from typing import Any

import numpy as np

from tiered import Model, PassContext, get_pass
from tiered.runtime.session import run
from tiered.testing import parse


def assert_same_nan(
    name: str, text: str, hiding: dict[str, Any], *, opset: int = 21, backend: str = "portable"
) -> None:
    """Assert that a pass rewrites a model, and that its first output stays NaN where it is.

    Args:
        name: the pass.
        text: the model.
        hiding: the operands that hide all keys of a query; others are ones.
        opset, backend: of the model and the run.
    """
    proto = parse(text, opset=opset)
    model = Model.from_proto(proto)
    get_pass(name).apply(model, PassContext.isolated(opt_level=3, backend=backend))
    feeds = dict(hiding)
    for info in proto.graph.input:
        dims = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
        feeds.setdefault(info.name, np.ones(dims, np.float32))
    after = model.to_proto()
    assert len(after.graph.node) != len(proto.graph.node)
    first, second = (next(iter(run(each, feeds).values())) for each in (proto, after))
    assert np.isnan(first).any()
    np.testing.assert_array_equal(np.isnan(first), np.isnan(second))
