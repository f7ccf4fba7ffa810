"""What layouts take in a model of many small regions: `python -m benchmarks.regions`.

The model is a stack of blocks as exporters write them, with heads that are split and merged by
Reshape and Transpose, and what other passes fuse in several rounds. Processor time of `optimize`,
with `convert_layout` and without; the fastest run counts. `--model FILE` measures another model,
`--steps 100` an unrolled state-space block, whose region is one of hundreds of operators.
"""

import argparse
import time
from collections.abc import Sequence

import numpy as np
import onnx

import tiered
from benchmarks.chains import Chain, state_space

HEADS, WIDTH, TOKENS = 2, 8, 12


def blocks(nodes: int) -> onnx.ModelProto:
    """Return a model of about so many nodes; each block has three Transposes."""
    chain = Chain((1, TOKENS, HEADS * WIDTH))
    split = chain.constant(np.array([1, TOKENS, HEADS, WIDTH], np.int64))
    merged = chain.constant(np.array([1, TOKENS, HEADS * WIDTH], np.int64))
    half, root = (chain.constant(np.float32(number)) for number in (0.5, 2.0**0.5))
    one = chain.constant(np.float32(1))
    value, block = "x", 0
    while len(chain.nodes) < nodes:
        heads = chain.node("Reshape", value, split)
        turned = chain.node("Tanh", chain.transpose(heads, 0, 2, 1, 3))
        scores = chain.node("MatMul", turned, chain.transpose(turned, 0, 1, 3, 2))
        mixed = chain.node("MatMul", chain.node("Softmax", scores, axis=-1), turned)
        back = chain.node("Reshape", chain.transpose(mixed, 0, 2, 1, 3), merged)
        product = chain.node("MatMul", back, chain.weight(HEADS * WIDTH, HEADS * WIDTH))
        shifted = chain.node("Add", product, chain.weight(HEADS * WIDTH))
        if block % 4 == 0:
            # A GELU as exporters write it.
            erf = chain.node("Add", chain.node("Erf", chain.node("Div", shifted, root)), one)
            shifted = chain.node("Mul", chain.node("Mul", shifted, erf), half)
        value = chain.node("Add", value, shifted)
        block += 1
    return chain.model(value)


def seconds(model: onnx.ModelProto, runs: int, disabled: Sequence[str] = ()) -> float:
    """Return the processor time of the fastest run."""
    taken = []
    for _ in range(runs):
        start = time.process_time()
        tiered.optimize(model, opt_level=3, disabled=disabled)
        taken.append(time.process_time() - start)
    return min(taken)


def main(model: onnx.ModelProto, runs: int) -> tuple[float, float]:
    """Print the time with layouts and without; return both."""
    seconds(blocks(100), 1)  # loads code and fills caches
    whole, rest = seconds(model, runs), seconds(model, runs, ["convert_layout"])
    count = sum(node.op_type == "Transpose" for node in model.graph.node)
    print(f"{len(model.graph.node):,} nodes, {count} Transposes")
    print(f"{whole * 1e3:.0f} ms; without convert_layout {rest * 1e3:.0f} ms ({rest / whole:.2f})")
    return whole, rest


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1_500)
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--model", default="")
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    if given.model:
        chosen = onnx.load(given.model)
    else:
        chosen = state_space(given.steps) if given.steps else blocks(given.nodes)
    main(chosen, given.runs)
