"""Time of gradients by the number of nodes: `python -m benchmarks.gradients [--sizes N ...]`.

Chains of transformer blocks and of elementwise layers, of exactly as many nodes as asked, with
respect to all weights and the input. Seconds are of the processor, the least of some runs, for
`add_gradients` on a loaded model whose types are known; beside them the nodes of the result.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable

import onnx

from tiered import Model, add_gradients
from tiered.testing import parse

SIZES = (4_000, 16_000, 64_000)
RUNS = 3
"""Runs of the smallest size; of others one."""

_BLOCK = """n{0} = LayerNormalization(x{0}, s, b)
    q{0} = MatMul(n{0}, wq)  k{0} = MatMul(n{0}, wk)  v{0} = MatMul(n{0}, wv)
    t{0} = Transpose<perm = [0,2,1]>(k{0})  d{0} = MatMul(q{0}, t{0})  m{0} = Mul(d{0}, scale)
    p{0} = Softmax(m{0})  a{0} = MatMul(p{0}, v{0})  o{0} = MatMul(a{0}, wo)  r{0} = Add(x{0}, o{0})
    l{0} = LayerNormalization(r{0}, s, b)  u{0} = MatMul(l{0}, wu)  c{0} = Add(u{0}, bu)
    e{0} = Sigmoid(c{0})  g{0} = Mul(c{0}, e{0})  w{0} = MatMul(g{0}, wd)  h{0} = Add(w{0}, b)
    y{0} = Add(r{0}, h{0})  x{1} = Identity(y{0})"""
_BLOCK_NODES = 20

_LAYER = "e{0} = Exp(x{0})  t{0} = Tanh(e{0})  m{0} = Mul(t{0}, s)  x{1} = Add(m{0}, x{0})"
_LAYER_NODES = 4

_WEIGHTS = {
    "float[8] s": 8, "float[8] b": 8, "float[8,8] wq": 64, "float[8,8] wk": 64,
    "float[8,8] wv": 64, "float[8,8] wo": 64, "float[8,16] wu": 128, "float[16] bu": 16,
    "float[16,8] wd": 128, "float scale": 1,
}  # fmt: skip


def stacked(block: str, size: int, nodes: int) -> onnx.ModelProto:
    """Return a chain of blocks of a size, and of Identity nodes up to the number of nodes."""
    count, rest = divmod(nodes, size)
    lines = [block.format(at, at + 1) for at in range(count)]
    lines += [f"i{at} = Identity({f'i{at - 1}' if at else f'x{count}'})" for at in range(rest)]
    last = f"i{rest - 1}" if rest else f"x{count}"
    weights = ", ".join(
        f"{name} = {{{','.join(['0.1'] * numbers)}}}" for name, numbers in _WEIGHTS.items()
    )
    return parse(f"(float[B,4,8] x0) => (float[B,4,8] {last}) <{weights}> {{ {' '.join(lines)} }}")


def transformer(nodes: int) -> onnx.ModelProto:
    """Return transformer blocks of 20 nodes each."""
    return stacked(_BLOCK, _BLOCK_NODES, nodes)


def elementwise(nodes: int) -> onnx.ModelProto:
    """Return elementwise layers of 4 nodes each."""
    return stacked(_LAYER, _LAYER_NODES, nodes)


def seconds(proto: onnx.ModelProto, runs: int) -> tuple[float, int]:
    """Return the seconds of the processor that the gradient takes, and the nodes of the result."""
    best, count = float("inf"), 0
    for _ in range(runs):
        model = Model.from_proto(proto)
        model.refresh_types()
        main = model.main
        targets = [value for value in (*main.inputs, *main.initializers) if value.is_used]
        gc.collect()
        start = time.process_time()
        add_gradients(model, [main.outputs[0]], targets, seed="input")
        best, count = min(best, time.process_time() - start), len(main)
    return best, count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    networks: dict[str, Callable[[int], onnx.ModelProto]] = {
        "transformer": transformer, "elementwise": elementwise,
    }  # fmt: skip
    print("| network | nodes | with gradients | seconds | us a node |\n|---|---|---|---|---|")
    for name, make in networks.items():
        for nodes in parser.parse_args().sizes:
            proto = make(nodes)
            assert len(proto.graph.node) == nodes
            taken, count = seconds(proto, RUNS if nodes <= min(SIZES) else 1)
            print(f"| {name} | {nodes} | {count} | {taken:.2f} | {taken / nodes * 1e6:.0f} |")


if __name__ == "__main__":
    main()
