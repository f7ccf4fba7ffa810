"""All nodes that depend on a value  =>  nothing, and the value is an output"""

from tiered import Model, Node, PassContext, Skip, Unable, UsageError, Value, module_pass


@module_pass(opt_level=None, changes_interface=True, touches=("*",))
def truncate_on_var(
    model: Model, ctx: PassContext, *, var: str = "", mark_as_output: bool = True
) -> Skip | None:
    """Remove all nodes that depend on a value: PPQ's truncate_on_var.

    Outputs that do not depend on it stay, and so do unused inputs.

    Args:
        var: the name of the value, in the main graph.
        mark_as_output: append the value to the outputs.

    Raises:
        UsageError: the value does not exist, or no output would remain.
    """
    if not var:
        return Unable("no var is given")
    graph = model.main
    value = graph.values.get(var)
    if value is None:
        raise UsageError(f"truncate_on_var: the main graph has no value {var!r}")
    below = _computed_from(value)
    lost = [output for output in graph.outputs if output.producer in below]
    if not mark_as_output and len(lost) == len(graph.outputs):
        raise UsageError(f"truncate_on_var: without {var!r} as an output the model has none")
    if mark_as_output:
        graph.add_output(value)
    for output in lost:
        graph.remove_output(output)
    graph.prune(graph.nodes)
    return None


def _computed_from(value: Value) -> set[Node]:
    """Return the nodes that depend on a value, directly or indirectly."""
    pending = list(value.readers)
    found = set(pending)
    while pending:
        new = [node for node in pending.pop().successors if node not in found]
        found.update(new)
        pending += new
    return found
