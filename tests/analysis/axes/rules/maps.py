"""The axis map of one node that a text has."""

from tiered import Model, Skip
from tiered.analysis.axes.axis_map import Axes, AxisMap, IteratorKind
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


def written(text: str, opset: int = 21) -> str:
    """Return the map of the node as text, or why it has none: `0 1, 1 2 -> 0 2 | reduction 1`."""
    axes = found(text, opset)
    if isinstance(axes, Skip):
        return f"no: {axes}"
    parts = [f"{', '.join(map(_labels, axes.inputs))} -> {', '.join(map(_labels, axes.outputs))}"]
    for kind in (IteratorKind.REDUCTION, IteratorKind.OPAQUE):
        own = tuple(sorted(label for label, its in axes.kinds.items() if its is kind))
        parts += [f"{kind.value} {_labels(own)}"] if own else []
    for label, steps in sorted(axes.windows.items()):
        parts.append(f"window {label}: {' '.join(map(str, steps))}")
    parts += [f"group {_labels(before)} = {_labels(after)}" for before, after in axes.groups]
    parts += [f"broadcasts {_labels(axes.broadcasts)}"] if axes.broadcasts else []
    parts += ["has shape"] if axes.has_shape else []
    return " | ".join(parts)


def _labels(axes: Axes | None) -> str:
    if axes is None:
        return "-"
    return " ".join("." if label is None else str(label) for label in axes) or "()"
