"""Random valid models: typed, shape-correct, of all dtypes, with bodies and local functions.

Everything is drawn from one `random.Random`, so that a number names a model, and hypothesis can
shrink what it finds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper

from tests.conformance.generator import bodies, rare, shapes, values
from tests.conformance.generator.scope import (
    DTYPES,
    Array,
    Known,
    Scope,
    numbers,
    onnx_type,
)

OPSETS = (7, 8, 9, 11, 12, 13, 15, 17, 18, 19, 21, 22, 23, 24, 26)
SIZES = {"n": 3, "m": 2, "": 2}
"""What the symbolic dims, and those without a name, are when the model is made."""

RARE_DTYPES = frozenset(map(onnx_type, rare.SINCE))

_OTHER_SIZES = (0, 1, 1, 2, 3, 5)
_FIRST_RARE = 13


def random_model(random: Random, nodes: int = 12) -> ModelProto:
    """Return a model of about so many nodes."""
    opset = random.choice(OPSETS)
    is_rare = opset >= _FIRST_RARE and random.random() < 0.2
    scope = Scope(random, opset, [0], _grow_rare if is_rare else _grow)
    if is_rare:
        scope.dtypes, scope.is_simple = ("float32", "int64", *rare.rare_dtypes(opset)), True
    infos = _add_inputs(scope)
    if not is_rare and random.random() < 0.3 and opset >= 13:
        scope.functions.extend(bodies.functions(random, opset))
    if random.random() < 0.1:
        overridable = scope.constant(numbers(random, "float32", (2,)))
        if any(tensor.name == overridable.name for tensor in scope.initializers):
            infos.append(helper.make_tensor_value_info(overridable.name, TensorProto.FLOAT, [2]))
    while len(scope.nodes) < nodes:
        scope.grow(scope)
    made = [value for value in scope.seen if not value.const]
    count = min(len(made), random.randint(1, 4))
    outputs = [made[-1], *random.sample(made[:-1], count - 1)]
    if random.random() < 0.2:
        outputs.append(random.choice(scope.seen))
    outputs = list(dict.fromkeys(outputs))
    given = [_declared(scope, value, infos) for value in outputs]
    graph = helper.make_graph(scope.nodes, "g", infos, given, scope.initializers)
    imports = [helper.make_opsetid("", opset)]
    if scope.functions:
        imports.append(helper.make_opsetid("local", 1))
    return helper.make_model(
        graph, opset_imports=imports, functions=scope.functions, ir_version=_ir_version(scope)
    )


def random_feeds(
    random: Random, model: ModelProto, sizes: Mapping[str, int] = SIZES
) -> dict[str, Array]:
    """Return inputs for a model of `random_model`; what has a default is fed sometimes."""
    defaults = {tensor.name for tensor in model.graph.initializer}
    feeds = {}
    for info in model.graph.input:
        if info.name in defaults and random.random() < 0.5:
            continue
        shape = tuple(
            dim.dim_value if dim.HasField("dim_value") else sizes[dim.dim_param]
            for dim in info.type.tensor_type.shape.dim
        )
        dtype = helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type).name
        feeds[info.name] = numbers(random, dtype, shape)
    return feeds


def other_sizes(random: Random) -> dict[str, int]:
    """Return sizes with which a model may run, or not: its constants speak of others."""
    return {name: random.choice(_OTHER_SIZES) for name in SIZES}


def has_rare_types(model: ModelProto) -> bool:
    """Tell whether a model takes anything that onnxruntime may have no kernels for."""
    return any(info.type.tensor_type.elem_type in RARE_DTYPES for info in model.graph.input)


def _add_inputs(scope: Scope) -> list[onnx.ValueInfoProto]:
    random, infos = scope.random, []
    for index in range(random.randint(1, 3)):
        dtype = random.choice(DTYPES if scope.dtypes is DTYPES else scope.dtypes[index:])
        dims = [random.choice((1, 2, 3, "n", "m", None)) for _ in range(random.randint(0, 3))]
        sizes = tuple(dim if isinstance(dim, int) else SIZES[dim or ""] for dim in dims)
        scope.is_dynamic |= any(not isinstance(dim, int) for dim in dims)
        scope.seen.append(Known(f"x{index}", dtype, sizes))
        infos.append(helper.make_tensor_value_info(f"x{index}", onnx_type(dtype), dims))
    return infos


def _ir_version(scope: Scope) -> int:
    return next(version for least, version in ((23, 11), (21, 10), (19, 9), (0, 8))
                if scope.opset >= least)  # fmt: skip


def _declared(
    scope: Scope, value: Known, infos: Sequence[onnx.ValueInfoProto]
) -> onnx.ValueInfoProto:
    for info in infos:
        if info.name == value.name:
            return info  # an input that is an output too
    dims: list[Any] = [*value.shape]
    if scope.is_dynamic or scope.random.random() < 0.5:
        dims = [None] * len(dims)
    return helper.make_tensor_value_info(value.name, onnx_type(value.dtype), dims)


# --- one step -------------------------------------------------------------------------------------

Step = Callable[[Scope], object]


def _grow(scope: Scope) -> None:
    """Add something; now and then what is there already, once more."""
    _take_step(scope, STEPS)


def _grow_rare(scope: Scope) -> None:
    _take_step(scope, RARE_STEPS)


def _take_step(scope: Scope, steps: tuple[Step, ...]) -> None:
    random = scope.random
    if scope.nodes and random.random() < 0.08:
        _again(scope)
        return
    choices = steps if scope.depth < 2 else steps[: -len(_NESTED)]
    random.choice(choices)(scope)


def _again(scope: Scope) -> None:
    node = scope.random.choice(scope.nodes)
    types = {value.name: value for value in scope.seen}
    outputs = [types.get(name) for name in node.output]
    if node.op_type == "Constant" or any(value is None for value in outputs):
        return
    copy = NodeProto()
    copy.CopyFrom(node)
    made = [Known(scope.fresh(), v.dtype, v.shape) for v in outputs if v is not None]
    del copy.output[:]
    copy.output.extend(value.name for value in made)
    copy.name = f"n{made[0].name}"
    scope.nodes.append(copy)
    scope.seen += made


_NESTED: tuple[Step, ...] = (bodies.branches, bodies.loop, bodies.scan)

_MOVES: tuple[Step, ...] = (
    shapes.reshape, shapes.reshape, shapes.dynamic_reshape, shapes.shape_arithmetic,
    shapes.squeezes, shapes.squeezes, shapes.transpose, shapes.transpose, shapes.slices,
    shapes.slices, shapes.gather, shapes.concat_split, shapes.concat_split, shapes.expand,
    shapes.flatten,
)  # fmt: skip

STEPS: tuple[Step, ...] = (
    values.unary, values.unary, values.binary, values.binary, values.binary, values.compare,
    values.where, values.cast, values.cast, *_MOVES, shapes.pad, values.reduce, values.matmul,
    values.conv, values.softmax, values.clip, values.clip, values.argmax, values.quantize,
    values.like, values.variadic, values.one_hot, bodies.call, *_NESTED,
)  # fmt: skip

RARE_STEPS: tuple[Step, ...] = (
    rare.identity, rare.cast, rare.cast, rare.cast, rare.quantize, rare.weight, rare.arithmetic,
    *_MOVES, values.where, *_NESTED,
)  # fmt: skip
