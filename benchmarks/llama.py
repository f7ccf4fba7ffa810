"""Models with the shape of a Llama as exporters write it, made on disk, tensor by tensor.

Each use of a small constant is a Constant node of its own. A deep model also has what TorchScript
writes for half a head and for keys and values that several heads share: 225 nodes a layer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, parser

BLOCK = np.random.default_rng(0).standard_normal(1 << 22).astype(np.float16).tobytes()

NORM = """{o}2 = Mul({x}, {x})  {o}m = ReduceMean({o}2, last)  {o}e = Add({o}m, eps)
    {o}s = Sqrt({o}e)  {o}d = Div({x}, {o}s)  {o} = Mul({o}d, w{o})"""
HEAD = """{o}p = MatMul({x}, w{o})  {o}b = Shape({x})  {o}b0 = Gather<axis=0>({o}b, i0)
    {o}b1 = Gather<axis=0>({o}b, i1)  {o}u0 = Unsqueeze({o}b0, zero)  {o}u1 = Unsqueeze({o}b1, zero)
    {o}z = Concat<axis=0>({o}u0, {o}u1, heads, each)  {o}w = Reshape({o}p, {o}z)
    {o} = Transpose<perm=[0,2,1,3]>({o}w)"""
ROTARY = """{o}l = Slice({x}, zero, {half}, axis3)  {o}h = Slice({x}, {half}, end, axis3)
    {o}n = Neg({o}h)  {o}j = Concat<axis=-1>({o}n, {o}l)  {o}c = Mul({x}, cos)
    {o}v = Mul({o}j, sin)  {o} = Add({o}c, {o}v)"""
HALF = """{o}k = Shape({x})  {o}k3 = Gather<axis=0>({o}k, i3)  {o}kd = Div({o}k3, i2)
    {o}kc = Cast<to=7>({o}kd)  {o}ke = Cast<to=7>({o}kc)  {o}kf = Unsqueeze({o}ke, zero)"""
SHARED = """{o}s0 = Shape({x})  {o}s1 = Shape({x})  {o}s2 = Shape({x})  {o}s3 = Shape({x})
    {o}g0 = Gather<axis=0>({o}s0, i0)  {o}g1 = Gather<axis=0>({o}s1, i1)
    {o}g2 = Gather<axis=0>({o}s2, i2)  {o}g3 = Gather<axis=0>({o}s3, i3)  {o}x = Unsqueeze({x}, two)
    {o}a0 = Unsqueeze({o}g0, zero)  {o}a1 = Unsqueeze({o}g1, zero)  {o}a2 = Unsqueeze({o}g2, zero)
    {o}a3 = Unsqueeze({o}g3, zero)  {o}t = Concat<axis=0>({o}a0, {o}a1, one, {o}a2, {o}a3)
    {o}r = Reshape({o}t, last)  {o}rs = Shape({o}r)
    {o}cs = ConstantOfShape<value = int64[1] {{1}}>({o}rs)  {o}cm = Mul({o}cs, last)
    {o}eq = Equal({o}r, {o}cm)  {o}wh = Where({o}eq, {o}cs, {o}r)  {o}ex = Expand({o}x, {o}wh)
    {o}q1 = Mul({o}g1, i1)  {o}b0 = Unsqueeze({o}g0, zero)  {o}b1 = Unsqueeze({o}q1, zero)
    {o}b2 = Unsqueeze({o}g2, zero)  {o}b3 = Unsqueeze({o}g3, zero)
    {o}bt = Concat<axis=0>({o}b0, {o}b1, {o}b2, {o}b3)  {o} = Reshape({o}ex, {o}bt)"""
ATTENTION = """Lkt = Transpose<perm=[0,1,3,2]>({k})  La = MatMul(Lqr, Lkt)  Lsc = Mul(La, scale)
    Lf = Cast<to=1>(Lsc)  Lsm = Softmax<axis=-1>(Lf)  Lsh = Cast<to=10>(Lsm)  Lid = Identity(Lsh)
    Lav = MatMul(Lid, {v})  Lat = Transpose<perm=[0,2,1,3]>(Lav)  Las = Shape(L1)
    Lar = Reshape(Lat, Las)  Lo = MatMul(Lar, wLo)  Lx = Add(X, Lo)"""
FORWARD = """Lg = MatMul(L2, wLg)  Lup = MatMul(L2, wLup)  Lgs = Sigmoid(Lg)  Lsi = Mul(Lg, Lgs)
    Lmu = Mul(Lsi, Lup)  Ldn = MatMul(Lmu, wLdn)  Ly = Add(Lx, Ldn)"""
SMALL = """<float16[1] eps = {{1}}, float16 scale = {{11264}}, int64 i0 = {{0}}, int64 i1 = {{1}},
    int64 i2 = {{2}}, int64 i3 = {{3}}, int64[1] zero = {{0}}, int64[1] one = {{1}},
    int64[1] two = {{2}}, int64[1] heads = {{{heads}}}, int64[1] each = {{{each}}},
    int64[1] half = {{{half}}}, int64[1] end = {{9223372036854775807}}, int64[1] axis3 = {{3}},
    int64[1] last = {{-1}}>"""


@dataclass(frozen=True)
class Sizes:
    """The sizes of a model."""

    hidden: int
    inner: int
    heads: int
    words: int

    @property
    def each(self) -> int:
        """Elements of a head."""
        return self.hidden // self.heads

    def weights(self, layers: int) -> Iterator[tuple[str, list[int]]]:
        """Yield names and dims of all weights."""
        square, wide = [self.hidden, self.hidden], [self.hidden, self.inner]
        shapes = {"1": [self.hidden], "2": [self.hidden], "q": square, "k": square, "v": square}
        shapes |= {"o": square, "g": wide, "up": wide, "dn": wide[::-1]}
        yield "words", [self.words, self.hidden]
        for layer in range(layers):
            yield from ((f"wn{layer}_{name}", shape) for name, shape in shapes.items())


LARGE = Sizes(2048, 8192, 16, 32_000)
LITTLE = Sizes(64, 128, 4, 100)


def make_model(
    path: Path, *, layers: int, is_external: bool = False, is_deep: bool = False
) -> None:
    """Write a model of so many layers.

    Args:
        path: the file.
        layers: 32 are 4.4 GB, 7 are 1 GB.
        is_external: the weights go to a file beside the model.
        is_deep: more nodes, and next to no weights.
    """
    sizes = LITTLE if is_deep else LARGE
    proto = _without_weights(sizes, layers, is_deep=is_deep)
    weights = dict(sizes.weights(layers))
    if is_external:
        data = path.with_name(path.name + ".data")
        with data.open("wb") as file:
            for name, shape in weights.items():
                _add_external(proto, name, shape, data.name, file)
    else:
        for turn, (name, shape) in enumerate(weights.items()):
            raw = b"".join(_numbers(turn, int(np.prod(shape)) * 2))
            tensor = helper.make_tensor(name, TensorProto.FLOAT16, shape, raw, raw=True)
            proto.graph.initializer.append(tensor)
    onnx.save(proto, path)


def little(layers: int) -> onnx.ModelProto:
    """Return a model of so many layers with little weights, other ones in each layer.

    The weights keep activations in the range of float16, so that the model can be verified.
    """
    proto = _without_weights(LITTLE, layers, is_deep=False)
    rng = np.random.default_rng(0)
    for name, shape in LITTLE.weights(layers):
        weight = rng.standard_normal(shape) / 8 + (len(shape) == 1)
        proto.graph.initializer.append(numpy_helper.from_array(weight.astype(np.float16), name))
    return proto


def _without_weights(sizes: Sizes, layers: int, *, is_deep: bool) -> onnx.ModelProto:
    proto = _graph(sizes, layers, _layer(is_deep=is_deep))
    _give_each_use_its_constant(proto.graph)
    return proto


def _layer(*, is_deep: bool) -> str:
    """Return the nodes of a layer, whose own names begin with L, or wL for a weight."""
    rotary = [(f"L{name}r", f"L{name}") for name in ("q", "k")]
    parts = [NORM.format(o="L1", x="X")]
    parts += [HEAD.format(o=f"L{name}", x="L1") for name in ("q", "k", "v")]
    if is_deep:
        parts += [HALF.format(o=o, x=x) for o, x in rotary]
    parts += [ROTARY.format(o=o, x=x, half=f"{o}kf" if is_deep else "half") for o, x in rotary]
    if is_deep:
        parts += [SHARED.format(o="LK", x="Lkr"), SHARED.format(o="LV", x="Lv")]
    parts.append(ATTENTION.format(k="LK" if is_deep else "Lkr", v="LV" if is_deep else "Lv"))
    return "\n".join((*parts, NORM.format(o="L2", x="Lx"), FORWARD))


def _graph(sizes: Sizes, layers: int, layer: str) -> onnx.ModelProto:
    steps, last = ["e = Gather<axis=0>(words, ids)"], "e"
    for number in range(layers):
        text = re.sub(r"\bX\b", last, layer)
        steps.append(re.sub(r"\b(w?)L(\w+)", rf"\g<1>n{number}_\g<2>", text))
        last = f"n{number}_y"
    small = SMALL.format(heads=sizes.heads, each=sizes.each, half=sizes.each // 2)
    return parser.parse_model(
        '<ir_version: 9, opset_import: ["" : 18]> g (int64[batch,seq] ids,'
        f" float16[{sizes.each}] cos, float16[{sizes.each}] sin)"
        f" => (float16[batch,seq,{sizes.hidden}] y) {small}"
        f" {{ {' '.join(steps)} y = Relu({last}) }}"
    )


def _give_each_use_its_constant(graph: onnx.GraphProto) -> None:
    small = {tensor.name: tensor for tensor in graph.initializer}
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        for index, name in enumerate(node.input):
            if name in small:
                node.input[index] = f"{node.output[0]}_c{index}"
                made = helper.make_node("Constant", [], [node.input[index]], value=small[name])
                nodes.append(made)
        nodes.append(node)
    nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:], graph.initializer[:]
    graph.node.extend(nodes)


def _add_external(
    proto: onnx.ModelProto, name: str, shape: list[int], location: str, file: BinaryIO
) -> None:
    length = int(np.prod(shape)) * 2
    file.write(b"\0" * (-file.tell() % 4096))
    tensor = proto.graph.initializer.add(name=name, data_type=TensorProto.FLOAT16, dims=shape)
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", file.tell()), ("length", length)):
        tensor.external_data.add(key=key, value=str(value))
    for block in _numbers(len(proto.graph.initializer), length):
        file.write(block)


def _numbers(seed: int, length: int) -> list[bytes]:
    """Return so many bytes, different for each seed."""
    start = 2 * (seed * 7919 % (len(BLOCK) // 4))
    blocks = [BLOCK[start : start + length]]
    while (left := length - sum(map(len, blocks))) > 0:
        blocks.append(BLOCK[:left])
    return blocks
