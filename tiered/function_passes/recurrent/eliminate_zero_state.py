"""LSTM(x, ..., initial_h=0, initial_c=0)  =>  LSTM(x, ...), and so for GRU and RNN"""

from typing import Final

from tiered import Graph, PassContext, Skip, Value, function_pass
from tiered.graph.queries.op_traits import REARRANGES

_OPERATORS: Final = ("GRU", "LSTM", "RNN")
_STATES: Final = ("initial_h", "initial_c")

_MOVES: Final = REARRANGES | {"Cast", "Concat", "Split"}
"""Operators whose results have the elements of the first operand; of Concat those of all."""


@function_pass(opt_level=1, matches=_OPERATORS)
def eliminate_zero_state(graph: Graph, ctx: PassContext) -> None:
    """Leave initial states of zeros out, which is what absent ones are.

    Exporters compute them from the size of the batch. What that takes goes with them.
    """
    for node in [node for kind in _OPERATORS for node in graph.nodes_of(kind)]:
        for at, name in enumerate(_STATES, start=5):
            state = node.input(at)
            if state is None or (name == "initial_c" and node.op_type != "LSTM"):
                continue
            if not _is_zero(state):
                ctx.skip(node, Skip("{} is not known to be zero", name))
                continue
            with graph.rewrite("RNN(x, initial_h=0) => RNN(x)", node):
                inputs = list(node.inputs)
                inputs[at] = None
                while inputs[-1] is None:
                    del inputs[-1]
                graph.set_inputs(node, inputs)
                graph.discard(state)


def _is_zero(value: Value) -> bool:
    """Return whether every element is +0: a constant, or made and moved so."""
    pending, seen = [value], {value}
    while pending:
        value = pending.pop()
        array, node = value.const, value.producer
        if array is not None:
            if any(array.tobytes()):
                return False
            continue
        if node is None or node.domain or node.has_references:
            return False
        if node.op_type == "ConstantOfShape":
            filling = node.attr("value", None)
            if filling is not None and any(filling.numpy().tobytes()):
                return False
            continue
        if node.op_type not in _MOVES:
            return False
        reads = node.inputs if node.op_type == "Concat" else node.inputs[:1]
        for read in reads:
            if read is not None and read not in seen:
                seen.add(read)
                pending.append(read)
    return True
