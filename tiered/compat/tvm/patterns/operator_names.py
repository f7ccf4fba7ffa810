"""Operators and attributes by TVM's names."""

from __future__ import annotations

from typing import Any, Final

from onnx import defs

from tiered.graph import Node
from tiered.support.errors import UsageError, did_you_mean

OPERATORS: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(("nn.conv1d", "nn.conv2d", "nn.conv3d"), ("Conv",)),
    **dict.fromkeys(
        ("nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose"), ("ConvTranspose",)
    ),
    **dict.fromkeys(("nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d"), ("MaxPool",)),
    **dict.fromkeys(("nn.avg_pool1d", "nn.avg_pool2d", "nn.avg_pool3d"), ("AveragePool",)),
    "abs": ("Abs",),
    "add": ("Add",),
    "argmax": ("ArgMax",),
    "argmin": ("ArgMin",),
    "broadcast_to": ("Expand",),
    "cast": ("Cast",),
    "ceil": ("Ceil",),
    "clip": ("Clip",),
    "concatenate": ("Concat",),
    "copy": ("Identity",),
    "cos": ("Cos",),
    "divide": ("Div",),
    "equal": ("Equal",),
    "erf": ("Erf",),
    "exp": ("Exp",),
    "expand_dims": ("Unsqueeze",),
    "floor": ("Floor",),
    "greater": ("Greater",),
    "image.resize2d": ("Resize",),
    "less": ("Less",),
    "log": ("Log",),
    "logical_and": ("And",),
    "logical_not": ("Not",),
    "logical_or": ("Or",),
    "max": ("ReduceMax",),
    "maximum": ("Max",),
    "mean": ("ReduceMean",),
    "min": ("ReduceMin",),
    "minimum": ("Min",),
    "multiply": ("Mul",),
    "negative": ("Neg",),
    "nn.batch_flatten": ("Flatten",),
    "nn.batch_matmul": ("MatMul",),
    "nn.batch_norm": ("BatchNormalization",),
    "nn.bias_add": ("Add",),
    "nn.dense": ("MatMul", "Gemm"),
    "nn.dropout": ("Dropout",),
    "nn.global_avg_pool2d": ("GlobalAveragePool",),
    "nn.global_max_pool2d": ("GlobalMaxPool",),
    "nn.instance_norm": ("InstanceNormalization",),
    "nn.layer_norm": ("LayerNormalization",),
    "nn.leaky_relu": ("LeakyRelu",),
    "nn.log_softmax": ("LogSoftmax",),
    "nn.lrn": ("LRN",),
    "nn.matmul": ("MatMul",),
    "nn.pad": ("Pad",),
    "nn.prelu": ("PRelu",),
    "nn.relu": ("Relu",),
    "nn.softmax": ("Softmax",),
    "power": ("Pow",),
    "prod": ("ReduceProd",),
    "qnn.conv2d": ("QLinearConv",),
    "qnn.dequantize": ("DequantizeLinear",),
    "qnn.quantize": ("QuantizeLinear",),
    "reshape": ("Reshape",),
    "round": ("Round",),
    "sigmoid": ("Sigmoid",),
    "sign": ("Sign",),
    "sin": ("Sin",),
    "split": ("Split",),
    "sqrt": ("Sqrt",),
    "squeeze": ("Squeeze",),
    "strided_slice": ("Slice",),
    "subtract": ("Sub",),
    "sum": ("ReduceSum",),
    "take": ("Gather",),
    "tanh": ("Tanh",),
    "tile": ("Tile",),
    "transpose": ("Transpose",),
    "where": ("Where",),
}
"""The operators of ONNX by TVM's name of the operator."""

_ATTRIBUTES: Final = {
    "dilation": "dilations",
    "groups": "group",
    "kernel_size": "kernel_shape",
    "padding": "pads",
    "pool_size": "kernel_shape",
}
"""Attributes of ONNX by TVM's name of the attribute."""
_FIXED: Final = {"data_layout": "NCHW", "kernel_layout": "OIHW", "layout": "NCHW", "out_layout": ""}
"""Attributes of TVM that ONNX's operators have in one way only."""
_ONES: Final = frozenset({"dilations", "strides"})


def operators_of(name: str) -> tuple[str, ...]:
    """Return the operators of a name, each as `Conv` or `com.microsoft::Gelu`.

    Raises:
        UsageError: no operator has this name.
    """
    if name in OPERATORS:
        return OPERATORS[name]
    if "::" in name or defs.has(name):
        return (name,)
    known = [*OPERATORS, *(schema.name for schema in defs.get_all_schemas())]
    raise UsageError(f"no operator is named {name!r}{did_you_mean(name, known)}")


def has_attribute(node: Node, name: str, wanted: Any) -> bool:
    """Return whether an attribute of a node, or its default, has a value.

    Args:
        node: the node.
        name: of the attribute, TVM's or ONNX's.
        wanted: a number, text, or a list; `padding` may have one number for both ends of an axis.

    Raises:
        UsageError: the operator has no such attribute.
    """
    if name in _FIXED:
        return bool(wanted == _FIXED[name])
    own = "perm" if name == "axes" and node.is_op("Transpose") else _ATTRIBUTES.get(name, name)
    schema = node.schema
    if schema is not None and own not in schema.attributes:
        hint = did_you_mean(own, schema.attributes)
        raise UsageError(f"has_attr: {node.op_type} has no attribute {name!r}{hint}")
    found = node.attr(own, None if own in ("kernel_shape", "pads", *_ONES) else node.attr(own))
    if isinstance(wanted, list | tuple):
        return _listed(node, own, found, tuple(wanted))
    return bool(found == wanted)


def _listed(node: Node, name: str, found: Any, wanted: tuple[Any, ...]) -> bool:
    """Return whether an attribute with several numbers has these."""
    if found is None and name in _ONES:
        found = (1,) * len(wanted)
    elif found is None and name == "pads":
        if node.attr("auto_pad", "NOTSET") in ("SAME_UPPER", "SAME_LOWER"):
            return False  # they depend on the sizes of the input
        found = (0,) * len(wanted)
    elif found is None and name == "kernel_shape":
        shape = node.given(1).shape
        found = None if shape is None else shape[2:]
    if name == "pads" and len(found) == 2 * len(wanted):
        wanted *= 2
    return found is not None and tuple(found) == wanted


_BY_RANK: Final = {
    "Conv": "nn.conv{}d",
    "ConvTranspose": "nn.conv{}d_transpose",
    "MaxPool": "nn.max_pool{}d",
    "AveragePool": "nn.avg_pool{}d",
}
_NAMES: Final[dict[str, str]] = {
    **{own: name for name, several in OPERATORS.items() for own in several},
    "Add": "add",
    "MatMul": "nn.matmul",
    "Gemm": "nn.dense",
}


def relay_name(node: Node) -> str:
    """Return TVM's name of the operator of a node; ONNX's where TVM has none."""
    if node.domain:
        return f"{node.domain}::{node.op_type}"
    if node.op_type in _BY_RANK:
        rank = node.given(0).rank
        return _BY_RANK[node.op_type].format(2 if rank is None else rank - 2)
    return _NAMES.get(node.op_type, node.op_type)


def attribute_names(name: str) -> tuple[str, ...]:
    """Return what an attribute may be called in ONNX by a name of TVM or of ONNX."""
    return (name, _ATTRIBUTES.get(name, name), *(("perm",) if name == "axes" else ()))
