"""One measurement in a process of its own.

    python -m benchmarks.worker [--at-need] TOOL SOURCE TARGET LEVEL [BACKEND]

The last line that it prints is the seconds of the optimise call, file to file. What a tool may need
of other people's packages, and what its own import statement loads, is there before the clock
starts. tiered loads most of its own code on first use: the row `tiered` pays for that within the
call, `tiered-loaded` has it before, as the others have theirs.

With `--at-need` nothing is loaded before the call, as in the programs that people write: for the
time and the memory of whole processes.
"""

import importlib
import importlib.util
import pkgutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


def _tiered(source: str, target: str, level: int, backend: str | None) -> None:
    import tiered

    tiered.optimize(source, target, opt_level=level, backend=backend)


def _load_tiered() -> None:
    """Load what a call may load: passes are loaded at their first run, other parts at need."""
    import tiered

    for part in ("graph", "analysis", "pipeline", "rewriter", "function_passes", "module_passes"):
        folder = importlib.import_module(f"tiered.{part}")
        for found in pkgutil.walk_packages(folder.__path__, f"tiered.{part}."):
            importlib.import_module(found.name)
    tiered.default_pipeline()


def _onnxslim(source: str, target: str, _level: int, _backend: str | None) -> None:
    import onnx
    import onnxslim

    onnx.save(onnxslim.slim(onnx.load(source)), target)


def _onnxsim(source: str, target: str, _level: int, _backend: str | None) -> None:
    import onnxsim

    onnxsim.simplify(source, output_path=target)


def _onnxoptimizer(source: str, target: str, _level: int, _backend: str | None) -> None:
    import onnx
    import onnxoptimizer

    onnx.save(onnxoptimizer.optimize(onnx.load(source)), target)


def _onnxscript(source: str, target: str, _level: int, _backend: str | None) -> None:
    import onnx_ir
    import onnxscript.optimizer

    model = onnx_ir.load(source)
    onnxscript.optimizer.optimize(model)
    onnx_ir.save(model, target)


def _onnxruntime(level: str) -> Callable[[str, str, int, str | None], None]:
    def run(source: str, target: str, _level: int, _backend: str | None) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
        options.optimized_model_filepath = target
        options.log_severity_level = 3  # it warns that the result is for this machine
        onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])

    return run


def _onnxifier(source: str, target: str, _level: int, _backend: str | None) -> None:
    onnxifier: Any = importlib.import_module("onnxifier")
    onnxifier.convert_graph(source, print_passes=False).save(target)


def _onnx_passes(source: str, target: str, _level: int, _backend: str | None) -> None:
    """Its generic passes: the tail of its own `streamline`, as it has no default pipeline."""
    import onnx_ir

    collect: Any = importlib.import_module("onnx_passes.passes").collect
    model = onnx_ir.load(source)
    names = ["shape-inference", "fold-constants", "eliminate", "cleanup"]
    state: dict[str, object] = {}
    passes = [made({}, state) for made in collect(names)]
    onnx_ir.save(onnx_ir.passes.PassManager(passes, steps=1)(model).model, target)


def _load_and_save(source: str, target: str, _level: int, _backend: str | None) -> None:
    import onnx

    onnx.save(onnx.load(source), target)


@dataclass(frozen=True)
class Tool:
    """An optimiser.

    Attributes:
        run: takes a source path, a target path, and a level and a backend, which only tiered knows.
        modules: what is imported before the clock starts; the last one is the tool itself.
        package: what to install to have it.
        load: what is called before the clock starts.
    """

    run: Callable[[str, str, int, str | None], object]
    modules: tuple[str, ...]
    package: str
    load: Callable[[], None] | None = None

    @property
    def is_installed(self) -> bool:
        """Return whether it can be imported, without doing so."""
        return importlib.util.find_spec(self.modules[-1].partition(".")[0]) is not None


AT_NEED = "--at-need"

_OWN = ("onnx", "onnxruntime", "networkx", "tiered")

TOOLS = {
    "tiered": Tool(_tiered, _OWN, "tiered"),
    "tiered-loaded": Tool(_tiered, _OWN, "tiered", _load_tiered),
    "onnxsim": Tool(_onnxsim, ("onnx", "onnxruntime", "onnxsim"), "onnxsim"),
    "ort-basic": Tool(_onnxruntime("ORT_ENABLE_BASIC"), ("onnxruntime",), "onnxruntime"),
    "ort-extended": Tool(_onnxruntime("ORT_ENABLE_EXTENDED"), ("onnxruntime",), "onnxruntime"),
    "onnxoptimizer": Tool(_onnxoptimizer, ("onnx", "onnxoptimizer"), "onnxoptimizer"),
    "onnxslim": Tool(_onnxslim, ("onnx", "onnxruntime", "onnxslim"), "onnxslim"),
    "onnxscript": Tool(
        _onnxscript, ("onnx", "onnx_ir", "onnxscript.optimizer", "onnxscript"), "onnxscript"
    ),
    "onnxifier": Tool(_onnxifier, ("onnx", "onnxifier"), "onnxifier"),
    "onnx-passes": Tool(
        _onnx_passes, ("onnx", "onnx_ir", "onnx_passes.passes", "onnx_passes"), "onnx-passes"
    ),
    "load-and-save": Tool(_load_and_save, ("onnx",), "onnx"),
}


def seconds_of_calls(
    name: str, source: str, target: str, *, level: int, backend: str | None = None, calls: int = 1
) -> list[tuple[float, float]]:
    """Call a tool some times, and return the time and the processor time of each call."""
    tool = TOOLS[name]
    for module in tool.modules:
        importlib.import_module(module)
    if tool.load is not None:
        tool.load()
    found = []
    for _ in range(calls):
        start, processor = time.perf_counter(), time.process_time()
        tool.run(source, target, level, backend)
        found.append((time.perf_counter() - start, time.process_time() - processor))
    return found


def main(name: str, source: str, target: str, level: str, backend: str | None = None) -> None:
    ((seconds, _),) = seconds_of_calls(name, source, target, level=int(level), backend=backend)
    print(f"\n{seconds}")


if __name__ == "__main__":
    if sys.argv[1] == AT_NEED:
        tool, source_path, target_path, *others = sys.argv[2:]
        TOOLS[tool].run(source_path, target_path, int(others[0]), (*others, None)[1])
    else:
        main(*sys.argv[1:])
