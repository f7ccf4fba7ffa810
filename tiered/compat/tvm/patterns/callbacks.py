"""`DFPatternCallback` and `rewrite` of `tvm.relay.dataflow_pattern`."""

from __future__ import annotations

from typing import Any

from tiered.compat.tvm.patterns.expression_matches import NodeMap, rewrite_model
from tiered.graph import Value


class DFPatternCallback:
    """A rewrite: `pattern`, and `callback(pre, post, node_map)`, which returns the new value.

    `pre` and `post` are the matched value, whose inputs are rewritten already. `node_map` has the
    values of each part of the pattern.

    Args:
        require_type: accepted, and without effect: values have types.
        rewrite_once: whether each node is visited once, instead of until nothing matches.
    """

    pattern: Any  # a DFPattern

    def __init__(self, require_type: bool = False, rewrite_once: bool = False) -> None:
        self.rewrite_once = rewrite_once

    def callback(self, pre: Value, post: Value, node_map: NodeMap) -> Value:
        """Return the value that takes the place of the matched one.

        Raises:
            NotImplementedError: the class does not define it.
        """
        raise NotImplementedError(f"{type(self).__name__} has no callback(pre, post, node_map)")

    def rewrite(self, expr: Any) -> Any:
        """Rewrite a model; a `Model` is edited and returned, a ModelProto stays."""
        return rewrite(self, expr)


def rewrite(callbacks: Any, expr: Any, mod: Any = None) -> Any:
    """Return a model after callbacks; a `Model` is edited and returned, a ModelProto stays.

    Args:
        callbacks: one, or several, which run one after the other.
        expr: the model.
        mod: not used: a model has its functions with it.
    """
    several = [callbacks] if isinstance(callbacks, DFPatternCallback) else list(callbacks)
    return rewrite_model(several, expr)
