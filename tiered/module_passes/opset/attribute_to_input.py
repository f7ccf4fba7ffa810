"""Operators with attributes that a newer opset has as inputs  =>  that opset, with these inputs"""

import onnx

from tiered import Model, Node, PassContext, Skip, Unable, module_pass
from tiered.numerics.precision.narrowing import unmatched


@module_pass(opt_level=None, required=("infer_shapes",), touches=("*",), changes_interface=True)
def attribute_to_input(model: Model, ctx: PassContext, *, op: tuple[str, ...] = ()) -> Skip | None:
    """Raise the opset until attributes are constant inputs, as those of Clip, Pad and Slice.

    All nodes are converted to that opset, as `convert_opset` does.

    Args:
        op: the operators; by default all that have such attributes.

    Raises:
        OpsetError: nodes have no form at the opset.
        UsageError: an operator does not exist.
    """
    for text in unmatched(model, op, ()):
        ctx.skip(None, Unable("{}", text))
    nodes = (node for graph in model.graphs() for node in graph.nodes if not node.domain)
    wanted = [_opset_of(node) for node in nodes if not op or node.op_type in op]
    newest = max(wanted, default=0)
    if not newest:
        for name in op:
            if not _has_moved(name):
                return Unable("no attribute of {} is an input in any opset", name)
        return Skip("no attribute is an input in a newer opset")
    model.convert_opset(newest)
    return None


def _opset_of(node: Node) -> int:
    """Return the first opset in which an attribute of a node is an input; 0 if there is none."""
    if all(value is None or value.graph is not None for value in node.operands):
        return 0
    for version in range(node.owner.opset() + 1, onnx.defs.onnx_opset_version() + 1):
        schema = onnx.defs.get_schema(node.op_type, version, "")
        if not node.attributes.keys() <= schema.attributes.keys():
            return version
    return 0


def _has_moved(op_type: str) -> bool:
    """Return whether the newest form of an operator lacks an attribute of an older one."""
    if "::" in op_type:
        return False
    known = [each for each in onnx.defs.get_all_schemas_with_history() if each.name == op_type]
    forms = sorted((each for each in known if not each.domain), key=lambda form: form.since_version)
    return any(form.attributes.keys() - forms[-1].attributes.keys() for form in forms)
