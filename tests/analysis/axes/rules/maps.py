"""The axis map of one node that a text has."""

from tiered import Model, Skip
from tiered.analysis.axes.axis_map import AxisMap
from tiered.analysis.axes.rules import axis_map
from tiered.testing import parse


def found(text: str, opset: int = 21) -> AxisMap | Skip:
    """Return what is known of the axes of the first node that is no constant."""
    header = f'<ir_version: 10, opset_import: ["": {opset}, "com.microsoft": 1]> g '
    nodes = Model.from_proto(parse(header + text)).main.nodes
    return axis_map(next(node for node in nodes if node.op_type != "Constant"))


def map_of(text: str, opset: int = 21) -> AxisMap:
    """Return the map of the node."""
    axes = found(text, opset)
    assert isinstance(axes, AxisMap), str(axes)
    return axes


def why_not(text: str, opset: int = 21) -> str:
    """Return why the node has no map."""
    axes = found(text, opset)
    assert isinstance(axes, Skip), "it has a map"
    return str(axes)
