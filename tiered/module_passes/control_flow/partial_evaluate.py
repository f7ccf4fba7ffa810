"""Loop(n, true, x) {body}, with a small n  =>  the body n times, and so for Scan"""

from collections import deque
from typing import Final

from tiered import (
    DataType,
    Graph,
    Model,
    Node,
    PassContext,
    Skip,
    is_deterministic,
    loop_turns,
    module_pass,
)

_UNROLLED: Final = ("Loop", "Scan")

_WAYS: Final = (
    "scan_input_axes", "scan_input_directions", "scan_output_axes", "scan_output_directions",
)  # fmt: skip


@module_pass(opt_level=2, looks_for=_UNROLLED, acts_on=("*",))
def partial_evaluate(
    model: Model, ctx: PassContext, *, max_iterations: int = 0, max_nodes: int = 10_000
) -> None:
    """Do without a Loop or Scan of which it is known how often it runs.

    A Loop that never runs is its initial values, one that runs once is its body. More iterations
    make the model grow, so they are unrolled only on demand. A constant If is left to
    eliminate_nop_if.

    Args:
        max_iterations: loops of up to so many iterations are unrolled.
        max_nodes: unrolling makes at most so many nodes.
    """
    loops = [
        node for graph in model.graphs() for kind in _UNROLLED for node in graph.nodes_of(kind)
    ]
    # From the inside out, so that no body changes which a copy was made of.
    pending = deque(reversed(loops))
    while pending:
        node = pending.popleft()
        if not node.is_live:
            continue
        iterations = _iterations(node, max_iterations)
        if not isinstance(iterations, Skip) and iterations > 1:
            made = iterations * sum(1 for _ in node.bodies[0].walk())
            if made > max_nodes:
                iterations = Skip("unrolling would make {} nodes, more than max_nodes", made)
            else:
                max_nodes -= made
        if isinstance(iterations, Skip):
            ctx.skip(node, iterations)
            continue
        copies: list[Node] = []
        graph, is_scan = node.owner, node.op_type == "Scan"
        law = f"{node.op_type} {{body}} of n turns => the body n times"
        with graph.rewrite(law, node):
            copies = (graph.unroll_scan if is_scan else graph.unroll)(node, iterations)
        inner = [copy for copy in copies if copy.graph is not None]
        inner += [each for copy in inner for body in copy.bodies for each in body.walk()]
        pending.extendleft(
            each for each in inner if each.op_type in _UNROLLED and not each.domain
        )


def _iterations(node: Node, most: int) -> int | Skip:
    """Return how often a Loop or Scan runs, or why it is left as it is."""
    body, is_scan = node.bodies[0] if node.bodies else None, node.op_type == "Scan"
    if body is None or not (_scan_fits if is_scan else _fits)(node, body):
        return Skip("its operands are not those of its body")
    if body.annotations:
        return Skip("quantization annotations speak of the body")
    count = _length(node) if is_scan else loop_turns(node)
    if isinstance(count, str):
        return Skip("{}", count)
    if count > max(most, 1):
        return Skip("it runs {} times, more than max_iterations={}", count, most)
    scans = node.outputs if is_scan else node.outputs[len(node.inputs) - 2 :]
    rows = [value for value in (*scans, *(node.inputs if is_scan else ())) if value is not None]
    if any(value.dtype is None or value.dtype >= DataType.FLOAT8E4M3FN for value in rows):
        return Skip("rows of this dtype cannot be taken and joined")
    if count == 0 and any(value is not None and value.is_used for value in scans):
        return Skip("it collects nothing, in a shape that is not known")
    if count > 1 and not all(is_deterministic(inner) for inner in body.walk()):
        return Skip("what the body does may differ each time")
    return count


def _fits(node: Node, body: Graph) -> bool:
    count = len(node.inputs)
    is_whole = 2 <= count == len(body.inputs) < len(body.outputs) + 2
    return is_whole and None not in node.inputs[2:]


def _scan_fits(node: Node, body: Graph) -> bool:
    """Tell whether a Scan has the operands of its body; before opset 9 it has one more."""
    if node.has_references:
        return False
    count = node.attr("num_scan_inputs", 0)
    is_whole = 0 < count <= len(node.inputs) == len(body.inputs) <= len(body.outputs) + count
    return is_whole and None not in node.inputs


def _length(node: Node) -> int | str:
    """Return how many rows a Scan reads from the first on, or what is not known of that."""
    if any(any(node.attr(name, None) or ()) for name in _WAYS):
        return "it reads or writes along another axis, or backwards"
    scanned = node.inputs[-node.attr("num_scan_inputs") :]
    lengths = [value.dim(0) for value in scanned if value is not None]
    known = next((length for length in lengths if isinstance(length, int)), None)
    return "the number of iterations is not a constant" if known is None else known
