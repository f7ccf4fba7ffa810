"""One measurement in a process of its own: `python -m benchmarks.worker TOOL SOURCE TARGET LEVEL`.

The last line that it prints is the seconds of the optimise call, file to file. What a tool needs of
other people's packages is imported before the clock starts.
"""

import importlib
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Tool:
    """An optimiser.

    Attributes:
        run: takes a source path, a target path and a level, which only tiered knows.
        modules: what is imported before the clock starts.
    """

    run: Callable[[str, str, int], object]
    modules: tuple[str, ...]


def _tiered(source: str, target: str, level: int) -> None:
    import tiered

    tiered.optimize(source, target, opt_level=level)


def _onnxslim(source: str, target: str, _level: int) -> None:
    import onnx
    import onnxslim

    onnx.save(onnxslim.slim(onnx.load(source)), target)


def _onnxsim(source: str, target: str, _level: int) -> None:
    import onnxsim

    onnxsim.simplify(source, output_path=target)


def _onnxoptimizer(source: str, target: str, _level: int) -> None:
    import onnx
    import onnxoptimizer

    onnx.save(onnxoptimizer.optimize(onnx.load(source)), target)


def _onnxscript(source: str, target: str, _level: int) -> None:
    import onnx
    import onnxscript.optimizer

    onnx.save(onnxscript.optimizer.optimize(onnx.load(source)), target)


def _onnxruntime(source: str, target: str, _level: int) -> None:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = target
    options.log_severity_level = 3  # it warns that the result is for this machine
    onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


TOOLS = {
    "tiered": Tool(_tiered, ("onnx", "onnxruntime", "networkx", "tiered")),
    "onnxslim": Tool(_onnxslim, ("onnx", "onnxslim")),
    "onnxsim": Tool(_onnxsim, ("onnx", "onnxruntime", "onnxsim")),
    "onnxoptimizer": Tool(_onnxoptimizer, ("onnx", "onnxoptimizer")),
    "onnxscript": Tool(_onnxscript, ("onnx", "onnxscript", "onnxscript.optimizer")),
    "onnxruntime": Tool(_onnxruntime, ("onnxruntime",)),
}


def main(name: str, source: str, target: str, level: str) -> None:
    tool = TOOLS[name]
    for module in tool.modules:
        importlib.import_module(module)
    start = time.perf_counter()
    tool.run(source, target, int(level))
    print(f"\n{time.perf_counter() - start}")


if __name__ == "__main__":
    main(*sys.argv[1:])
