"""Loop(n, true, x) {body} with a small n  =>  the body n times; Scan likewise"""

from collections import deque
from typing import Final

from tiered import DataType, Graph, Model, Node, PassContext, Skip, is_deterministic, module_pass
from tiered.runtime.fold.trip_count import trip_count_of

_UNROLLED: Final = ("Loop", "Scan")

_AXES_AND_DIRECTIONS: Final = (
    "scan_input_axes", "scan_input_directions", "scan_output_axes", "scan_output_directions",
)  # fmt: skip


@module_pass(opt_level=2, matches=_UNROLLED, touches=("*",))
def partial_evaluate(
    model: Model, ctx: PassContext, *, max_iterations: int = 0, max_nodes: int = 10_000
) -> None:
    """Replace a Loop or Scan with a known trip count by copies of its body.

    A trip count of 0 leaves the initial values, 1 leaves the body. A higher count makes the model
    grow, so it is unrolled only on demand; then the trip count of `while i < 3` is computed too, if
    its condition depends on constants alone. TVM's pass of this name also evaluates an If; here
    `eliminate_nop_if` does that, and `specialize_functions` binds constants in local functions.

    Args:
        max_iterations: the highest trip count that is unrolled.
        max_nodes: bound on the nodes that unrolling adds.
    """
    loops = [
        node for graph in model.graphs() for kind in _UNROLLED for node in graph.nodes_of(kind)
    ]
    # Inner loops first: a body is copied after it is final.
    pending = deque(reversed(loops))
    while pending:
        node = pending.popleft()
        if not node.is_live:
            continue
        iterations = _iterations(node, max_iterations, max_nodes)
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
        law = f"{node.op_type} {{body}} of n iterations => the body n times"
        with graph.rewrite(law, node):
            copies = (graph.unroll_scan if is_scan else graph.unroll)(node, iterations)
        inner = [copy for copy in copies if copy.graph is not None]
        inner += [each for copy in inner for body in copy.bodies for each in body.walk()]
        pending.extendleft(each for each in inner if each.op_type in _UNROLLED and not each.domain)


def _iterations(node: Node, most: int, max_nodes: int) -> int | Skip:
    """Return the trip count of a Loop or Scan, or why it is not unrolled."""
    body, is_scan = node.bodies[0] if node.bodies else None, node.op_type == "Scan"
    if body is None or not (_scan_fits if is_scan else _fits)(node, body):
        return Skip("its operands do not match its body")
    if body.annotations:
        return Skip("quantization annotations refer to the body")
    count = _length(node) if is_scan else trip_count_of(node, min(most, max_nodes))
    if isinstance(count, str):
        return Skip("{}", count)
    if count > max(most, 1):
        return Skip("it runs {} times, more than max_iterations={}", count, most)
    states = len(node.inputs) - (node.attr("num_scan_inputs") if is_scan else 2)
    scans = node.outputs[states:]
    scanned = node.inputs[states:] if is_scan else ()
    rows = [value for value in (*scans, *scanned) if value is not None]
    if any(value.dtype is None or value.dtype >= DataType.FLOAT8E4M3FN for value in rows):
        return Skip("rows of this dtype cannot be concatenated")
    if count == 0 and any(value is not None and value.is_used for value in scans):
        return Skip("its empty scan output has no known shape")
    if count > 1 and not all(is_deterministic(inner) for inner in body.walk()):
        return Skip("the body is not deterministic")
    return count


def _fits(node: Node, body: Graph) -> bool:
    count = len(node.inputs)
    is_whole = 2 <= count == len(body.inputs) < len(body.outputs) + 2
    return is_whole and None not in node.inputs[2:]


def _scan_fits(node: Node, body: Graph) -> bool:
    """Return whether a Scan has the operands of its body; before opset 9 it has one more."""
    if node.has_references:
        return False
    count = node.attr("num_scan_inputs", 0)
    is_whole = 0 < count <= len(node.inputs) == len(body.inputs) <= len(body.outputs) + count
    return is_whole and None not in node.inputs


def _length(node: Node) -> int | str:
    """Return the trip count of a Scan, or why it is not known."""
    if any(any(node.attr(name, None) or ()) for name in _AXES_AND_DIRECTIONS):
        return "it scans backwards or along another axis"
    scanned = node.inputs[-node.attr("num_scan_inputs") :]
    lengths = [value.dim(0) for value in scanned if value is not None]
    known = next((length for length in lengths if isinstance(length, int)), None)
    return "the number of iterations is not a constant" if known is None else known
