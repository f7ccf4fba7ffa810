"""MultiThreshold(x, t)  =>  MultiThreshold(x, Ceil(t)), where x is of integers"""

from typing import Final

import numpy as np

from tiered import (
    Graph,
    IntegerType,
    Node,
    PassContext,
    Skip,
    Value,
    function_pass,
    integer_types,
)
from tiered.rewriter.idioms.qonnx_bodies import DOMAINS

_EXACT: Final = 1 << 24
"""Up to here every integer is a float32."""


@function_pass(
    opt_level=None,
    required=("infer_shapes",),
    followed_by=("eliminate_unused_initializer",),
    matches=tuple(f"{domain}::MultiThreshold" for domain in DOMAINS),
)
def round_thresholds(graph: Graph, ctx: PassContext) -> None:
    """Round thresholds of integers up, and limit them to the integers that there are.

    An integer reaches a number if it reaches the next integer; the first one is always reached, and
    none reaches more than the last one plus 1.
    """
    types = graph.model.analysis(integer_types)
    nodes = [node for domain in DOMAINS for node in graph.nodes_of("MultiThreshold", domain)]
    for node in nodes:
        x, thresholds = (node.input(place) for place in range(2))
        found = None if x is None else types[x]
        rounded = _rounded(node, thresholds, found)
        if isinstance(rounded, Skip):
            ctx.skip(node, rounded)
            continue
        assert thresholds is not None
        with graph.rewrite("MultiThreshold(x, t) => MultiThreshold(x, Ceil(t))", node):
            graph.set_input(node, 1, graph.constant(rounded, thresholds.name))


def _rounded(
    node: Node, thresholds: Value | None, known: IntegerType | None
) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]] | Skip:
    if node.owner.model.function(node.domain, node.op_type) is not None:
        return Skip("the model defines the operator")
    array = None if thresholds is None else thresholds.const
    if array is None or array.dtype != np.float32 or np.isnan(array).any():
        return Skip("thresholds are not constant numbers of float32")
    if known is None:
        return Skip("x is not known to be of integers")
    if known.is_scaled:
        return Skip("x is of multiples of a scale, not of integers")
    limits = known.low, known.high
    if max(map(abs, limits)) >= _EXACT:
        return Skip("the integers are not all float32")
    # Not -0.0, which is no integer of its own.
    rounded = np.clip(np.ceil(array), limits[0], limits[1] + 1) + np.float32(0)
    if rounded.tobytes() == array.tobytes():
        return Skip("the thresholds are integers already")
    return np.asarray(rounded, np.float32)
