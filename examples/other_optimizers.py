"""Other people's optimisers as passes: in one pipeline with ours, undone on failure, verified.

    python examples/other_optimizers.py [model.onnx]

Those that are not installed are left out.
"""

import importlib.util
import sys
from pathlib import Path

import onnx

from tiered import Pass, PassContext, Sequential, optimize_model, proto_pass
from tiered.pipeline.instruments import Timing

BERT = Path(__file__).parent / "models" / "bert.ts.onnx"


@proto_pass(opt_level=3, numerics="reassociating")
def onnxsim(proto: onnx.ModelProto) -> object:
    """onnxsim's simplifier, which says of its own result whether it believes in it."""
    import onnxsim

    return onnxsim.simplify(proto)


@proto_pass(opt_level=3, numerics="reassociating")
def onnxscript_optimizer(proto: onnx.ModelProto) -> onnx.ModelProto:
    """onnxscript's optimizer: constant folding, shape inference, and its rules."""
    import onnxscript.optimizer

    optimized: onnx.ModelProto = onnxscript.optimizer.optimize(proto)
    return optimized


@proto_pass(opt_level=3, numerics="reassociating")
def onnxscript_rewriter(proto: onnx.ModelProto) -> onnx.ModelProto:
    """onnxscript's rewriter with its default rules."""
    import onnxscript.rewriter

    rewritten: onnx.ModelProto = onnxscript.rewriter.rewrite(proto)
    return rewritten


@proto_pass(opt_level=3, numerics="reassociating")
def onnxslim(proto: onnx.ModelProto) -> onnx.ModelProto:
    """onnxslim's passes."""
    import onnxslim

    slimmed: onnx.ModelProto = onnxslim.slim(proto)
    return slimmed


NEEDS: dict[Pass, str] = {
    onnxsim: "onnxsim",
    onnxscript_optimizer: "onnxscript",
    onnxscript_rewriter: "onnxscript",
    onnxslim: "onnxslim",
}
"""The package that each of them comes from."""


def installed() -> list[Pass]:
    """Return those passes whose package is there."""
    return [pass_ for pass_, package in NEEDS.items() if importlib.util.find_spec(package)]


def main(path: Path = BERT) -> None:
    others = installed()
    pipeline = Sequential(["infer_shapes", "fold_constant", *others, "eliminate_deadend"])
    model = onnx.load(path)
    timing = Timing()
    print(f"{path.name}: {len(model.graph.node)} nodes; {pipeline}")
    # One that fails is undone, and the rest goes on.
    with PassContext(opt_level=3, on_error="skip", instruments=[timing]) as context:
        result = optimize_model(model, passes=pipeline, verify=True)
    for outcome in context.report.results:
        if outcome.error is not None:
            print(f"{outcome.name} failed: {outcome.error}")
    # A pass that leaves the nodes as they are needs no run.
    compared = [output for found in result.verified or () for output in found.outputs]
    worst = max((output.max_abs for output in compared), default=0.0)
    print(f"{len(result.model.main)} nodes, verified: outputs differ by at most {worst:.1e}")
    print(timing)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
