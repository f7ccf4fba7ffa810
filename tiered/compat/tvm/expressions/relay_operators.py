"""The operators of relay as functions: `relay.add`, `relay.nn.conv2d`, over those of ONNX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tiered.compat.tvm.expressions.building import Builder
from tiered.compat.tvm.expressions.expr import (
    Call,
    Constant,
    Op,
    Tuple,
    Var,
    as_expr,
    const,
    elem_type,
)
from tiered.compat.tvm.patterns.operator_names import OPERATORS
from tiered.graph import Value
from tiered.support.amounts import counted
from tiered.support.errors import UsageError, did_you_mean

_SAME_OPERANDS: Final = frozenset((
    "abs", "add", "ceil", "copy", "cos", "divide", "equal", "erf", "exp", "floor", "greater",
    "less", "log", "logical_and", "logical_not", "logical_or", "maximum", "minimum", "multiply",
    "negative", "nn.global_avg_pool2d", "nn.global_max_pool2d", "nn.relu", "power", "round",
    "sigmoid", "sign", "sin", "sqrt", "subtract", "tanh", "where",
))  # fmt: skip
"""The functions of TVM with the operands of ONNX's operator, and no attributes."""

_REDUCTIONS: Final = ("max", "mean", "min", "prod", "sum")


def function_of(name: str) -> Callable[..., Any]:
    """Return the function of relay of a name, such as `nn.relu`.

    It returns a new call; with a `Value` among its operands it makes the node, and returns its
    value.

    Raises:
        AttributeError: TVM has no such operator.
    """
    if name not in OPERATORS:
        raise AttributeError(f"relay has no operator {name!r}{did_you_mean(name, OPERATORS)}")

    def make(*args: Any, **attrs: Any) -> Any:
        call = _call(name, args, attrs)
        call.is_newest = True
        values = [each for each in _flat(args) if isinstance(each, Value)]
        return Builder(values[0].owner).value(call) if values else call

    make.__name__ = make.__qualname__ = name.rpartition(".")[2]
    return make


class Namespace:
    """Functions with a common prefix: `relay.nn`, `relay.image`."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return function_of(f"{self._prefix}.{name}")


PREFIXES: Final = frozenset(name.partition(".")[0] for name in OPERATORS if "." in name)


def get(name: str) -> Op:
    """Return an operator by the name of TVM or ONNX: `relay.op.get("nn.relu")`."""
    return Op(name)


def _flat(args: Sequence[Any]) -> list[Any]:
    return [e for arg in args for e in (arg if isinstance(arg, tuple | list) else (arg,))]


def _call(name: str, args: tuple[Any, ...], attrs: dict[str, Any]) -> Call:
    if name in _SAME_OPERANDS:
        if attrs:
            raise UsageError(f"relay.{name} takes no {', '.join(attrs)}")
        return Call(Op(name), args)
    short = name.rpartition(".")[2]
    if name in _REDUCTIONS:
        return _reduction(name, *args, **attrs)
    made = _ADAPTED.get(short)
    if made is None:
        own = OPERATORS[name][0]
        raise UsageError(
            f"relay.{name} makes no call here: relay.Call(relay.op.get({own!r}), args, attrs) "
            "does, with the operands and attributes of ONNX"
        )
    return made(*args, **attrs)


def _ints(given: Any) -> list[int]:
    return [int(given)] if isinstance(given, int) else [int(each) for each in given]


def _both_ends(padding: Any) -> list[int]:
    """Return paddings of both axes at both ends: one number, one for each axis, or all."""
    given = _ints(padding)
    if len(given) not in (1, 2, 4):
        raise UsageError(f"padding is one number, one for each axis or all four, not {padding!r}")
    return given * (4 // len(given))


def _axes(axis: Any) -> Any:
    return const(np.array(_ints(axis), np.int64))


def _conv2d(
    data: Any, weight: Any, strides: Any = (1, 1), padding: Any = (0, 0), dilation: Any = (1, 1),
    groups: int = 1, channels: int | None = None, kernel_size: Any = None,
    data_layout: str = "NCHW", kernel_layout: str = "OIHW", out_layout: str = "",
    out_dtype: str = "",
) -> Call:  # fmt: skip
    _check_layout("data_layout", data_layout, "NCHW")
    _check_layout("kernel_layout", kernel_layout, "OIHW")
    _check_layout("out_layout", out_layout, "NCHW")
    _check_dtype("conv2d", out_dtype)
    attrs: dict[str, Any] = {
        "strides": _pair(strides), "pads": _both_ends(padding), "dilations": _pair(dilation),
        "group": groups,
    }  # fmt: skip
    if kernel_size is not None:
        attrs["kernel_shape"] = _pair(kernel_size)
    return Call(Op("nn.conv2d"), (data, weight), attrs)


def _check_layout(name: str, given: str, wanted: str) -> None:
    if given not in ("", wanted):
        raise UsageError(f"{name} is {wanted} in ONNX, not {given!r}")


def _check_dtype(name: str, given: str) -> None:
    if given:
        raise UsageError(f"relay.nn.{name}: out_dtype={given!r} has no equivalent; cast the result")


def _pair(given: Any) -> list[int]:
    found = _ints(given)
    return found * 2 if len(found) == 1 else found


def _pool(name: str, more: dict[str, Any]) -> Callable[..., Call]:
    def make(
        data: Any, pool_size: Any = (1, 1), strides: Any = (1, 1), dilation: Any = (1, 1),
        padding: Any = (0, 0), layout: str = "NCHW", out_layout: str = "", ceil_mode: bool = False,
        **other: Any,
    ) -> Call:  # fmt: skip
        _check_layout("layout", layout, "NCHW")
        _check_layout("out_layout", out_layout, "NCHW")
        attrs = {
            "kernel_shape": _pair(pool_size), "strides": _pair(strides),
            "pads": _both_ends(padding), "ceil_mode": int(ceil_mode),
        }  # fmt: skip
        if (steps := _pair(dilation)) != [1, 1]:  # an AveragePool has none before opset 19
            attrs["dilations"] = steps
        for key, given in {**more, **other}.items():
            if key not in more:
                raise UsageError(f"relay.{name} takes no {key}")
            attrs[key] = int(given)
        return Call(Op(name), (data,), attrs)

    return make


def _dense(data: Any, weight: Any, units: int | None = None, out_dtype: str = "") -> Call:
    _check_dtype("dense", out_dtype)
    return Call(Op("nn.dense", ("Gemm",)), (data, weight), {"transB": 1})


def _bias_add(data: Any, bias: Any, axis: int = 1) -> Call:
    is_conv = isinstance(data, Call) and data.node is None and data.op == Op("Conv")
    if is_conv and axis == 1 and len(data.args) == 2:
        return Call(data.op, (*data.args, bias), data.attrs)
    is_dense = isinstance(data, Call) and data.op == Op("Gemm")
    if axis != -1 and not (is_dense and axis == 1):
        raise UsageError("relay.nn.bias_add takes the last axis, or that of a new nn.conv2d")
    return Call(Op("add"), (data, bias))


def _batch_norm(
    data: Any, gamma: Any, beta: Any, moving_mean: Any, moving_var: Any, axis: int = 1,
    epsilon: float = 1e-5, center: bool = True, scale: bool = True,
) -> Call:  # fmt: skip
    if axis != 1 or not center or not scale:
        raise UsageError("relay.nn.batch_norm has axis 1, a scale and a centre in ONNX")
    operands = (data, gamma, beta, moving_mean, moving_var)
    return Call(Op("nn.batch_norm"), operands, {"epsilon": epsilon})


def _reduction(
    name: str, data: Any, axis: Any = None, keepdims: bool = False, exclude: bool = False
) -> Call:
    if exclude:
        raise UsageError(f"relay.{name}: name the axes to reduce, without exclude")
    operands = (data,) if axis is None else (data, _axes(axis))
    return Call(Op(name), operands, {"keepdims": int(keepdims)})


def _take(data: Any, indices: Any, axis: int | None = None, **more: Any) -> Call:
    if axis is None or more:
        raise UsageError("relay.take needs an axis, and no mode")
    return Call(Op("take"), (data, indices), {"axis": axis})


def _rank(of: Any) -> int | None:
    """Return the rank of an operand, as far as it is known."""
    if isinstance(of, Value):
        return of.rank
    if isinstance(of, Constant):
        return of.data.numpy().ndim
    known = of.type_annotation if isinstance(of, Var) else of.checked_type
    return None if known is None else len(known.shape)


def _prelu(data: Any, alpha: Any, axis: int = 1) -> Call:
    """Return a PRelu with a slope for each index of an axis.

    ONNX aligns slopes to the last axes: those of TVM get axes of 1 behind them.
    """
    data, alpha = as_expr(data), as_expr(alpha)
    rank = _rank(data)
    if rank is None:
        raise UsageError("relay.nn.prelu needs data of a known rank")
    if not -rank <= axis < rank:
        raise UsageError(f"relay.nn.prelu: data of {counted(rank, 'dim')} has no axis {axis}")
    behind = rank - 1 - axis % rank
    if behind and _rank(alpha) in (None, 1):
        alpha = Call(Op("expand_dims"), (alpha, _axes(range(1, behind + 1))))
        alpha.is_newest = True
    return Call(Op("nn.prelu"), (data, alpha))


def _reshape(data: Any, newshape: Any) -> Call:
    if any(dim < -1 for dim in _ints(newshape)):
        raise UsageError(f"relay.reshape takes dims, 0 and -1, not {newshape}")
    return Call(Op("reshape"), (data, _axes(newshape)))


def _transpose(data: Any, axes: Any = None) -> Call:
    return Call(Op("transpose"), (data,), {} if axes is None else {"perm": _ints(axes)})


def _squeeze(data: Any, axis: Any = None) -> Call:
    return Call(Op("squeeze"), (data,) if axis is None else (data, _axes(axis)))


def _concatenate(data: Any, axis: int) -> Call:
    fields = data.fields if isinstance(data, Tuple) else data
    return Call(Op("concatenate"), [as_expr(each) for each in fields], {"axis": axis})


_ADAPTED: Final[dict[str, Callable[..., Call]]] = {
    "avg_pool2d": _pool("nn.avg_pool2d", {"count_include_pad": False}),
    "batch_flatten": lambda data: Call(Op("nn.batch_flatten"), (data,), {"axis": 1}),
    "batch_norm": _batch_norm,
    "bias_add": _bias_add,
    "cast": lambda data, dtype: Call(Op("cast"), (data,), {"to": elem_type(dtype)}),
    "clip": lambda a, a_min, a_max: Call(
        Op("clip"), (a, const(a_min, "float32"), const(a_max, "float32"))
    ),
    "concatenate": _concatenate,
    "conv2d": _conv2d,
    "dense": _dense,
    "expand_dims": lambda data, axis: Call(Op("expand_dims"), (data, _axes(axis))),
    "leaky_relu": lambda data, alpha=0.01: Call(Op("nn.leaky_relu"), (data,), {"alpha": alpha}),
    "log_softmax": lambda data, axis=-1: Call(Op("nn.log_softmax"), (data,), {"axis": axis}),
    "matmul": lambda tensor_a, tensor_b: Call(Op("nn.matmul"), (tensor_a, tensor_b)),
    "max_pool2d": _pool("nn.max_pool2d", {}),
    "prelu": _prelu,
    "reshape": _reshape,
    "softmax": lambda data, axis=-1: Call(Op("nn.softmax"), (data,), {"axis": axis}),
    "squeeze": _squeeze,
    "take": _take,
    "transpose": _transpose,
}
"""The functions of TVM with other operands or attributes than ONNX's operator, by short name."""
