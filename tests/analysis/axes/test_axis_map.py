"""Axis maps against the operators themselves: elements are changed, and it is seen which follow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

from tiered import Model
from tiered.analysis.axes.axis_map import (
    AXES,
    Axes,
    AxisMap,
    IteratorKind,
    NoMap,
    broadcast,
    dims_of,
    first_alone,
)
from tiered.analysis.axes.node_cut import node_cut
from tiered.analysis.axes.rules import axis_map
from tiered.extensions.memory.splitting.split_region import SplitRegion
from tiered.extensions.memory.splitting.split_writer import write_parts
from tiered.graph import Node
from tiered.graph.queries.op_traits import BROADCASTING, REDUCTIONS, SOFTMAXES, UNARY
from tiered.rewriter import Skip
from tiered.runtime import Session
from tiered.testing import parse

Array = np.ndarray[Any, Any]

LOGICAL = {"And", "Or", "Xor", "Not"}
INTEGERS = {"BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"}
MIXED = (IteratorKind.REDUCTION, IteratorKind.OPAQUE)
BOOLEAN = {*LOGICAL, "Equal", "Greater", "GreaterOrEqual", "IsInf", "IsNaN", "Less", "LessOrEqual"}


class Case(NamedTuple):
    """A node `a = ...` of operands that are changed, and of constants."""

    line: str
    operands: str
    constants: str = ""
    dtype: str = "float"
    opset: int = 23
    loose: tuple[int, ...] = ()
    """Labels of which these operands do not show that they are not parallel."""
    typed: str = ""
    """The type of `a`, where it is not inferred."""

    @property
    def key(self) -> tuple[str, str]:
        """The domain and the name of the operator."""
        name = self.line.split("=", 1)[1].split("<")[0].split("(")[0].strip()
        domain, _, op_type = name.rpartition(".")
        return domain, op_type

    def text(self) -> str:
        constants = f"<{self.constants}>" if self.constants else ""
        header = f'<ir_version: 10, opset_import: ["": {self.opset}, "com.microsoft": 1]> g '
        outputs = f"{self.dtype}[] y" + (f", {self.typed}" if self.typed else "")
        return (
            f"{header}({self.operands}) => ({outputs}) {constants} "
            f"{{ {self.line} y = Identity(a) }}"
        )


def unary(op_type: str) -> Case:
    kind = "bool" if op_type in LOGICAL else "uint8" if op_type in INTEGERS else "float"
    more = {"CastLike": ", other"}.get(op_type, "")
    attributes = "<to=1>" if op_type == "Cast" else ""
    made = "bool" if op_type in BOOLEAN else kind
    return Case(
        f"a = {op_type}{attributes}(x{more})",
        f"{kind}[2,3] x",
        "float other = {1}" if more else "",
        made,
        24,
    )


def broadcasting(op_type: str) -> Case:
    of_integers = op_type in (*INTEGERS, "BitShift")
    kind = "bool" if op_type in LOGICAL else "uint8" if of_integers else "float"
    made = "bool" if op_type in BOOLEAN else kind
    if op_type == "Where":
        return Case("a = Where(c, x, z)", "bool[4] c, float[2,1,4] x, float[3,1] z")
    attributes = {"BitShift": '<direction="LEFT">', "Mod": "<fmod=1>"}.get(op_type, "")
    other = f"{kind}[3,4] z" if op_type == "PRelu" else f"{kind}[2,1,4] z"
    first = f"{kind}[2,3,4] x" if op_type == "PRelu" else f"{kind}[3,4] x"
    return Case(f"a = {op_type}{attributes}(x, z)", f"{first}, {other}", dtype=made)


QUANTIZED = "float s = {0.1}, uint8 z = {1}"

CASES = [
    *(unary(each) for each in UNARY),
    *(broadcasting(each) for each in BROADCASTING),
    *(Case(f"a = {each}<keepdims={keep}>(x, axes)", "float[2,3,4] x", "int64[2] axes = {0,-1}")
      for each in REDUCTIONS for keep in (0, 1)),
    Case("a = ReduceSum(x)", "float[2,3] x"),
    Case("a = ReduceSum<noop_with_empty_axes=1>(x)", "float[2,3] x"),
    Case("a = ReduceSum<axes=[1], keepdims=0>(x)", "float[2,3,2] x", opset=11),
    *(Case(f"a = {each}<axis={axis}>(x)", "float[2,3,2] x", opset=opset)
      for each in SOFTMAXES for axis, opset in ((1, 13), (1, 11), (-1, 13))),
    *(Case(f"a = {each}<axis=1, keepdims={keep}>(x)", "float[2,3,4] x", dtype="int64")
      for each in ("ArgMax", "ArgMin") for keep in (0, 1)),
    Case("a = LpNormalization<axis=0>(x)", "float[2,3] x"),
    Case("a, b = TopK<axis=1>(x, k)", "float[2,4] x", "int64[1] k = {2}"),
    Case("a = CumSum(x, axis)", "float[2,3] x", "int64 axis = {-1}"),
    Case("a = LayerNormalization<axis=1>(x, s, b)", "float[2,3,4] x, float[4] s, float[3,4] b"),
    Case("a = LayerNormalization(x, s)", "float[2,3,4] x, float[3,4] s"),
    Case("a = RMSNormalization(x, s)", "float[2,3,4] x, float[4] s"),
    Case("a = BatchNormalization(x, s, b, m, v)",
         "float[2,3,2] x, float[3] s, float[3] b, float[3] m, float[3] v"),
    Case("a = InstanceNormalization(x, s, b)", "float[2,3,4] x, float[3] s, float[3] b"),
    Case("a = GroupNormalization<num_groups=2>(x, s, b)", "float[2,4,3] x, float[4] s, float[4] b"),
    Case("a = LRN<size=3>(x)", "float[2,4,3,2] x"),
    Case("a = MeanVarianceNormalization<axes=[0,2]>(x)", "float[2,3,4] x",
         typed="float[2,3,4] a"),
    Case("a = Trilu(x)", "float[2,3,3] x", loose=(1, 2)),
    Case("a = ReverseSequence<batch_axis=0, time_axis=1>(x, n)", "float[2,3,2] x",
         "int64[2] n = {2,3}"),
    *(Case(f"a = {each}(x)", "float[2,3,4,2] x", opset=21)
      for each in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")),
    Case("a = MatMul(x, w)", "float[2,1,3,4] x, float[5,4,2] w"),
    Case("a = MatMul(x, w)", "float[4] x, float[2,4,3] w"),
    Case("a = MatMul(x, w)", "float[2,3,4] x, float[4] w"),
    Case("a = MatMulInteger(x, w)", "uint8[2,3] x, uint8[3,4] w", dtype="int32"),
    Case("a = QLinearMatMul(x, s, z, w, s, z, s, z)", "uint8[2,3] x, uint8[3,4] w",
         "float s = {1}, uint8 z = {0}", "uint8"),
    Case("a = MatMulInteger(x, w, p, q)", "uint8[2,3] x, uint8[3,4] w, uint8[4] q",
         "uint8 p = {3}", "int32"),
    Case("a = QLinearMatMul(x, s, z, w, t, q, s, z)", "uint8[2,3] x, int8[3,4] w",
         "float s = {1}, uint8 z = {0}, float[4] t = {1,2,3,1}, int8[4] q = {0,0,0,0}", "uint8"),
    Case("a = Gemm(x, w, b)", "float[2,3] x, float[3,4] w, float[4] b"),
    Case("a = Gemm<transA=1, transB=1>(x, w, b)", "float[3,2] x, float[4,3] w, float[2,1] b"),
    Case('a = Einsum<equation="bij, jk -> kbi">(x, w)', "float[2,3,4] x, float[4,5] w"),
    Case('a = Einsum<equation="ij, jk">(x, w)', "float[3,4] x, float[4,2] w"),
    Case('a = Einsum<equation="bii->bi">(x)', "float[2,3,3] x", loose=(ord("i"),)),
    Case("a = Conv<strides=[2], pads=[1,2], dilations=[2]>(x, w, b)",
         "float[2,3,9] x, float[4,3,3] w, float[4] b"),
    Case("a = Conv<group=2>(x, w)", "float[2,4,5] x, float[4,2,2] w", loose=(1,)),
    Case('a = Conv<auto_pad="SAME_UPPER">(x, w)', "float[2,2,5] x, float[3,2,3] w"),
    Case("a = ConvInteger<pads=[1,1]>(x, w)", "uint8[2,3,5] x, uint8[2,3,3] w", dtype="int32"),
    Case("a = QLinearConv(x, s, z, w, t, q, s, z)", "uint8[1,2,4,3] x, uint8[3,2,2,2] w",
         "float s = {1}, uint8 z = {0}, float[3] t = {1,2,3}, uint8[3] q = {0,0,0}", "uint8"),
    Case("a = ConvTranspose(x, w, b)", "float[2,3,4] x, float[3,2,3] w, float[2] b"),
    Case("a = ConvTranspose<group=2>(x, w)", "float[1,4,3] x, float[4,1,2] w"),
    Case("a = MaxPool<kernel_shape=[3], strides=[2], pads=[1,1]>(x)", "float[2,3,7] x"),
    Case("a = AveragePool<kernel_shape=[2,3], pads=[1,0,0,1]>(x)", "float[1,2,5,6] x"),
    Case("a = LpPool<kernel_shape=[2], strides=[2]>(x)", "float[2,2,6] x"),
    Case("a = MaxPool<kernel_shape=[2], ceil_mode=1, strides=[2]>(x)", "float[2,2,5] x"),
    Case("a = DepthToSpace<blocksize=2>(x)", "float[2,4,1,2] x"),
    Case("a = SpaceToDepth<blocksize=2>(x)", "float[2,1,2,4] x"),
    Case("a = GridSample(x, g)", "float[2,3,4,4] x, float[2,2,3,2] g"),
    Case("a = DeformConv<kernel_shape=[2,2]>(x, w, o)",
         "float[2,2,3,3] x, float[3,2,2,2] w, float[2,8,2,2] o", opset=22),
    Case("a = QuantizeLinear<axis=1>(x, s)", "float[2,3] x", "float[3] s = {0.1,0.2,0.4}", "uint8"),
    Case("a = QuantizeLinear(x, s)", "float[2,3] x", "float s = {0.1}", "uint8"),
    Case("a = DequantizeLinear<axis=0>(x, s, z)", "int8[2,3] x, float[2] s, int8[2] z"),
    Case("a = DequantizeLinear<axis=1, block_size=2>(x, s)", "int8[3,4] x, float[3,2] s",
         loose=(1,)),
    Case("a = Transpose<perm=[2,0,1]>(x)", "float[2,3,4] x"),
    Case("a = Reshape(x, s)", "float[4,1,6,5] x", "int64[4] s = {4,2,15,1}"),
    Case("a = Reshape(x, s)", "float[4,6] x", "int64[3] s = {2,12,1}"),
    Case("a = Flatten<axis=2>(x)", "float[2,3,4] x"),
    Case("a = Squeeze(x, s)", "float[2,1,3,1] x", "int64[1] s = {1}"),
    Case("a = Squeeze(x)", "float[2,1,3,1] x"),
    Case("a = Unsqueeze(x, s)", "float[2,3] x", "int64[2] s = {0,-1}"),
    Case("a = Expand(x, s)", "float[3,1] x", "int64[3] s = {2,1,4}"),
    Case("a = Tile(x, s)", "float[2,3] x", "int64[2] s = {1,2}"),
    Case("a = Concat<axis=-1>(x, z)", "float[2,3] x, float[2,2] z"),
    Case("a, b = Split<axis=1, num_outputs=2>(x)", "float[3,4] x", loose=(1,)),
    Case("a = Slice(x, one, two, one)", "float[3,4] x", "int64[1] one = {1}, int64[1] two = {3}"),
    Case("a = Slice(x, one, two)", "float[4,2] x", "int64[1] one = {1}, int64[1] two = {3}"),
    Case("a = Pad(x, p)", "float[3,4] x", "int64[4] p = {0,1,0,0}"),
    Case("a = Pad(x, p, , at)", "float[3,4] x", "int64[2] p = {1,-1}, int64[1] at = {-2}"),
    Case("a = Gather<axis=1>(x, i)", "float[2,4,3] x, int64[2,2] i"),
    Case("a = GatherElements<axis=1>(x, i)", "float[2,4] x, int64[2,3] i"),
    Case("a = GatherElements<axis=1>(x, i)", "float[3,4] x, int64[2,3] i", loose=(0,)),
    Case("a = ScatterElements<axis=0>(x, i, u)", "float[4,3] x, int64[2,3] i, float[2,3] u"),
    Case("a = Scatter<axis=1>(x, i, u)", "float[2,4] x, int64[2,2] i, float[2,2] u", opset=10),
    Case("a = GatherND<batch_dims=1>(x, i)", "float[2,4,3] x, int64[2,2,1] i"),
    Case("a = GatherND(x, i)", "float[2,4,3] x, int64[3,2] i"),
    Case("a = ScatterND(x, i, u)", "float[4,3] x, int64[2,1] i, float[2,3] u", loose=(0,)),
    Case("a = Compress<axis=1>(x, c)", "float[2,3] x", "bool[3] c = {0,1,1}"),
    *(Case(f"a = com.microsoft.{each}(x)", "float[2,3] x")
      for each in ("FastGelu", "Gelu", "QuickGelu")),
    Case("a = com.microsoft.BiasGelu(x, b)", "float[2,3] x, float[3] b"),
    Case("a = com.microsoft.FusedGemm<transA=1, activation=\"Relu\">(x, w, b)",
         "float[3,2] x, float[3,4] w, float[4] b"),
    Case("a = com.microsoft.FusedMatMul<transB=1>(x, w)", "float[2,3,4] x, float[1,5,4] w"),
    Case("a = com.microsoft.FusedMatMul<transA=1>(x, w)", "float[2,4,3] x, float[4,5] w"),
    *(Case(f"a, m, v, s = com.microsoft.{each}(x, k, g)",
           "float[2,3,4] x, float[1,3,4] k, float[4] g")
      for each in ("SkipLayerNormalization", "SkipSimplifiedLayerNormalization")),
    *(Case(f"a = com.microsoft.{each}(x, s, z, s, z)", "uint8[2,3] x", QUANTIZED, "uint8")
      for each in ("QLinearLeakyRelu", "QLinearSigmoid")),
    *(Case(f"a = com.microsoft.{each}(x, s, z, w, s, z, s, z)", "uint8[2,1,3] x, uint8[4,3] w",
           QUANTIZED, "uint8") for each in ("QLinearAdd", "QLinearMul")),
    Case("a = com.microsoft.QuantizeLinear<axis=1>(x, s, z)", "float[2,3] x",
         "float[3] s = {0.1,0.2,0.4}, uint8[3] z = {1,2,3}", "uint8"),
    Case("a = com.microsoft.DequantizeLinear(x, s, z)", "uint8[2,3] x", QUANTIZED),
    Case('a = Resize<mode="linear">(x, , s)', "float[2,3,4] x", "float[3] s = {1,1,2}"),
    Case("a = Resize<axes=[2]>(x, , , s)", "float[2,3,4] x", "int64[1] s = {7}"),
    Case('a = Upsample<mode="linear">(x, s)', "float[1,2,3,4] x", "float[4] s = {1,1,2,2}",
         opset=9),
    Case("a = OneHot<axis=1>(i, depth, values)", "int64[2,3] i",
         "int64 depth = {4}, float[2] values = {0,1}"),
]  # fmt: skip

NOT_RUN = {("", "CumProd"), ("com.microsoft", "FusedConv")}
"""onnxruntime has no kernel, or the case of another operator has the same rule."""


def model_of(case: Case) -> tuple[Model, Node]:
    model = Model.from_proto(parse(case.text()))
    return model, next(node for node in model.main.nodes if (node.domain, node.op_type) == case.key)


def feeds_of(model: Model, seed: int = 0) -> dict[str, Array]:
    """Return numbers for each input: indices that differ for int64, floats without equal ones."""
    draw = np.random.default_rng(seed)
    made = {}
    for value in model.main.inputs:
        shape = tuple(int(str(dim)) for dim in value.shape or ())
        made[value.name] = numbers(draw, value.dtype or 1, shape)
    return made


def numbers(draw: np.random.Generator, dtype: int, shape: tuple[int, ...]) -> Array:
    count = int(np.prod(shape))
    match dtype:
        case 1:
            return draw.uniform(0.05, 0.95, shape).astype(np.float32)
        case 9:
            return draw.integers(0, 2, shape).astype(np.bool_)
        case 7:
            # Distinct along each axis, so that no scatter writes one place twice.
            return (np.arange(count).reshape(shape) % 2).astype(np.int64)
        case 3:
            return draw.integers(-8, 8, shape).astype(np.int8)
        case _:
            return draw.integers(0, 8, shape).astype(np.uint8)


def changes(case: Case) -> Iterator[tuple[int, int, int, int, Array, Array]]:
    """Yield each axis by slot and place, its label, an index, and the results before and after."""
    model, node = model_of(case)
    found = axis_map(node)
    assert isinstance(found, AxisMap)
    out = found.outputs[0]
    assert out is not None
    session = Session(model.to_proto())
    feeds = feeds_of(model)
    before = session.run(feeds)["y"]
    draw = np.random.default_rng(1)
    for slot, (value, axes) in enumerate(zip(node.operands, found.inputs, strict=True)):
        if value is None or axes is None or value.name not in feeds:
            continue
        array = feeds[value.name]
        for axis, label in enumerate(axes):
            size = before.shape[out.index(label)] if label in out else None
            is_other = size not in (None, array.shape[axis])
            if label is None or (slot in found.broadcasts and is_other):
                assert array.shape[axis] == 1, "an axis of several elements has no iterator"
                continue
            for index in range(array.shape[axis]):
                changed = array.copy()
                place = (slice(None),) * axis + (index,)
                other = numbers(draw, value.dtype or 1, array[place].shape)
                if array.dtype == np.int64:
                    other = 1 - array[place]
                changed[place] = ~array[place] if array.dtype == np.bool_ else other
                after = session.run({**feeds, value.name: changed})["y"]
                yield slot, axis, label, index, before, after


def touched(found: AxisMap, label: int, index: int, size: int) -> set[int]:
    """Return the indices of the result along an iterator that may need an element of operand 0."""
    steps = found.windows.get(label)
    if steps is None:
        return {index}
    first = [at * steps.stride - steps.pad for at in range(size)]
    return {at for at, low in enumerate(first) if low <= index < low + steps.extent}


def ids(case: Case) -> str:
    return f"{case.line} {case.operands}"


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_a_changed_element_changes_what_the_map_says_and_no_more(case: Case) -> None:
    found = axis_map(model_of(case)[1])
    assert isinstance(found, AxisMap)
    out = found.outputs[0]
    assert out is not None
    mixed: set[int] = set()
    known: set[int] = set()
    for _, _, label, index, before, after in changes(case):
        if label not in out:
            assert found.kind(label) in MIXED, "it is parallel, and no axis of the result"
            continue
        axis = out.index(label)
        allowed = touched(found, label, index, before.shape[axis])
        differs = (before != after) & ~(np.isnan(before) & np.isnan(after))
        rest = tuple(at for at in range(before.ndim) if at != axis)
        rows = set(np.flatnonzero(differs.any(axis=rest)).tolist())
        known.add(label)
        if found.kind(label) not in MIXED:
            assert rows <= allowed
        elif rows - {index}:
            mixed.add(label)
    apart = {each for each in known if found.kind(each) in MIXED} - mixed
    assert apart <= set(case.loose), "no element shows that it is not parallel"


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_parts_of_operands_make_a_part_of_the_result(case: Case) -> None:
    """The node is computed in parts along each axis that is parallel or of windows."""
    for axis in range(model_of(case)[1].output.rank or 0):
        model, node = model_of(case)
        cut = node_cut(node, axis)
        size = node.output.dim(axis)
        if cut is None or not isinstance(size, int) or size < 2:
            continue
        feeds = feeds_of(model)
        before = Session(model.to_proto()).run(feeds)["y"]
        reason = write_parts(model.main, SplitRegion({node: cut}), 2)
        assert reason is None or isinstance(reason, Skip)
        if reason is not None:
            assert str(reason).startswith(("Slice and Concat do not take", "a part would be empty"))
            continue
        model.check_view()
        np.testing.assert_allclose(
            Session(model.to_proto()).run(feeds)["y"], before, rtol=1e-5, atol=1e-6
        )


def test_every_operator_with_a_rule_has_a_case() -> None:
    assert {*AXES.rules} == {case.key for case in CASES} | NOT_RUN


@pytest.mark.parametrize(
    ("text", "header", "why"),
    [
        (
            "(float[2,3] x, float[2] z) => (float[2,3] y) { y = Add<broadcast=1, axis=0>(x, z) }",
            6,
            "its opset broadcasts in another way",
        ),
        (
            "(float[2,3] x, int64[1] at) => (float[A,B] y) { y = ReduceSum(x, at) }", 21,
            "its axes are not constant",
        ),
        (
            "(float[2,3] x, int64[1] at) => (float[A,B] y) { y = Slice(x, at, at, at) }", 21,
            "its axes are not constant",
        ),
        (
            "(float[2,3] x, int64 at) => (float[2,3] y) { y = CumSum(x, at) }", 21,
            "its axis is not constant",
        ),
        ("(float x) => (float[A] y) { y = Softmax(x) }", 21, "its axis is out of range"),
        (
            "(float[3] x) => (float[3] y) { y = BatchNormalization(x, x, x, x, x) }", 21,
            "its rank is 1",
        ),
        ("(float[] x) => (float[A] y) { y = Neg(x) }", 21, "its rank is not known"),
        (
            "(bool c) => (float[2] y) { y = If(c) <then_branch = t () => (float[2] v) "
            "{ v = RandomNormal<shape=[2]>() }, else_branch = e () => (float[2] w) "
            "{ w = RandomNormal<shape=[2]>() }> }", 21,
            "how its axes belong together is not known",
        ),
        (
            "(float[2,3] x) => (float[A,B] y) { y = MeanVarianceNormalization(x) }", 21,
            "its axes are out of range",
        ),
        (
            "(float[2,3] x, float[3] z) => (float[A,B] y) { y = Concat<axis=0>(x, z) }", 21,
            "its operands differ in rank",
        ),
        (
            "(float[2,3] x, float[1] low) => (float[2,3] y) { y = Clip(x, low) }", 21,
            "an operand beside the first one is no scalar",
        ),
        (
            "(float[2] x) => (float[2] y) { y = acme.Any(x) }", 21,
            "how its axes belong together is not known",
        ),
        (
            "(float[2,3,2] x, float[3] s) => (float[2,3,2] y, float[3] m, float[3] v) "
            "{ y, m, v = BatchNormalization<training_mode=1>(x, s, s, s, s) }", 21,
            "it is in training mode",
        ),
        (
            "(float[2] x) => (float[2] y) <float r = {0.5}, bool t = {1}> { y = Dropout(x,r,t) }",
            21, "it draws random numbers",
        ),
        (
            '(float[2,2] x) => (float[2,2] y) { y = Einsum<equation="...->...">(x) }', 21,
            "its equation has an ellipsis, or a letter twice in its result",
        ),
        (
            "(float[2,4] x, float[4] s) => (float[2,4] y) { y = RMSNormalization(x, s) }", 13,
            "its opset has no such operator",
        ),
    ],
)  # fmt: skip
def test_what_is_not_known_has_no_map(text: str, header: int, why: str) -> None:
    parsed = parse(f'<ir_version: 6, opset_import: ["": {header}, "acme": 1]> g {text}')
    (node,) = Model.from_proto(parsed).main.nodes
    found = axis_map(node)
    assert isinstance(found, Skip)
    assert str(found) == why


@pytest.mark.parametrize(
    "text",
    [
        "(float[2,3] x, int64[4] p) => (float[A,B] y) { y = Pad(x, p) }",
        "(float[2,3] x, int64[2] s) => (float[A,B] y) { y = Tile(x, s) }",
    ],
)
def test_along_an_axis_that_may_change_no_part_is_taken(text: str) -> None:
    found = axis_map(Model.from_proto(parse(text)).main.nodes[0])
    assert isinstance(found, AxisMap)
    assert [found.kind(label) for label in (0, 1)] == [IteratorKind.OPAQUE] * 2


def test_a_function_with_the_name_of_an_operator_has_no_map() -> None:
    text = """<ir_version: 10, opset_import: ["": 21]> g (float[2,3] x) => (float[2,3] y)
        { y = Relu(x) } <domain: "", opset_import: ["": 21]> Relu (a) => (b) { b = Softmax(a) }"""
    (node,) = Model.from_proto(parse(text)).main.nodes
    assert isinstance(axis_map(node), Skip)


def test_groups_of_a_reshape_are_named() -> None:
    case = Case("a = Reshape(x, s)", "float[4,6,5] x", "int64[4] s = {4,2,15,1}")
    found = axis_map(model_of(case)[1])
    assert isinstance(found, AxisMap)
    (labels, _), (made,) = found.inputs, found.outputs
    assert labels is not None
    assert made is not None
    assert labels[0] == made[0]
    assert made[1] is not None
    assert made[3] is None
    assert found.groups == ((labels[1:], made[1:3]),)
    assert found.kind(made[1]) is IteratorKind.OPAQUE


def test_an_axis_without_an_iterator_is_not_parallel() -> None:
    axes = AxisMap(((0, None, 2), None), ((0,),), {2: IteratorKind.OPAQUE})
    assert [axes.at(0, axis) for axis in range(3)] == [0, None, 2]
    assert (axes.at(1, 0), axes.at(2, 0)) == (None, None)
    assert [axes.is_parallel(label) for label in (0, None, 2)] == [True, False, False]


def test_rules_of_users_are_asked_where_the_ranks_are_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(AXES.rules, ("acme", "Scale"), first_alone)
    header = '<ir_version: 10, opset_import: ["": 21, "acme": 1]> g '
    function = '<domain: "acme", opset_import: ["": 21]> Scale (a) => (b) { b = Neg(a) }'
    for text, inputs, outputs in (
        ("(float[2] x) => (float[2] y) { y = acme.Scale(x) }", ((0,),), ((0,),)),
        ("(float[2] x) => (float[2] y) { y = acme.Scale(x, , x) }", ((0,), None, None), ((0,),)),
        ("(float[2] x) => (float[2] y, float[] z) { y, z = acme.Scale(x) }", ((0,),), ((0,),) * 2),
        ("(float[2] x, float[] w) => (float[2] y) { y = acme.Scale(x, w) }", None, None),
        ("(float[2] x) => (float[] y) { y = acme.Scale(x) }", None, None),
        # A function of the user's own domain is known by its name.
        (f"(float[2] x) => (float[2] y) {{ y = acme.Scale(x) }} {function}", ((0,),), ((0,),)),
    ):
        found = axis_map(Model.from_proto(parse(header + text)).main.nodes[0])
        if inputs is None:
            assert str(found) == "its rank is not known", text
        else:
            assert found == AxisMap(inputs, outputs or ()), text


def test_an_attribute_of_a_call_is_not_known_in_a_function() -> None:
    text = """<ir_version: 10, opset_import: ["": 21, "acme": 1]> g (float[2,3] x) => (float[2,3] y)
        { y = acme.F<at = 1>(x) } <domain: "acme", opset_import: ["": 21]>
        F <at> (a) => (b) { b = Softmax<axis: int = @at>(a) }"""
    (function,) = Model.from_proto(parse(text)).functions
    assert str(axis_map(function.nodes[0])) == "attribute 'axis' is a function parameter"


def test_operands_that_are_absent_or_have_more_axes() -> None:
    made: Axes = (0, 1)
    graph = Model.from_proto(parse("(float[2,3] x, float[] w) => (float[2] y) { y = Neg(x) }")).main
    x, w = graph.inputs
    assert broadcast(None, (0, 1)) is None
    assert broadcast(x, (0, 1)) == made
    assert broadcast(x, (0, 1, 2)) == (1, 2)
    with pytest.raises(NoMap, match="an operand has more axes than the result"):
        broadcast(x, (0,))
    for value in (None, w):
        with pytest.raises(NoMap, match="its rank is not known"):
            dims_of(value)


@pytest.mark.parametrize(
    "text",
    [
        "(uint8[4,3] x, float[3] s) => (float[4,3] y) { y = DequantizeLinear<axis=1>(x, s) }",
        "(float[4,2,5] x, float[3,2,3] w) => (float[4,3,3] y) { y = Conv(x, w) }",
        "(float[4,2] x, float[2,3] w) => (float[4,3] y) { y = Gemm(x, w) }",
        "(float[4,2] x) => (float[4,2] y) { y = Clip(x) }",
    ],
)
def test_an_operand_without_a_name_at_the_end_has_no_iterators(text: str) -> None:
    proto = parse(text)
    (plain,) = Model.from_proto(proto).main.nodes
    proto.graph.node[0].input.append("")
    (node,) = Model.from_proto(proto).main.nodes
    wanted, made = axis_map(plain), axis_map(node)
    assert isinstance(wanted, AxisMap)
    assert made == wanted._replace(inputs=(*wanted.inputs, None))
    for axis in range(2):
        whole, cut = node_cut(plain, axis), node_cut(node, axis)
        assert whole is None or cut == whole._replace(windows=(*whole.windows, None))


def test_an_operator_that_lacks_operands_has_no_map() -> None:
    header = '<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1]> g '
    for call in ("QLinearAdd(x)", "FusedConv(x)", "SkipLayerNormalization(x)", "FastGelu()",
                 "DequantizeLinear(x)"):  # fmt: skip
        text = f"{header}(float[2,3,4] x) => (float[2,3,4] y) {{ y = com.microsoft.{call} }}"
        found = axis_map(Model.from_proto(parse(text)).main.nodes[0])
        assert str(found) == "it lacks an operand", call
