"""Optimise the models of examples/models at -O3, verified, through the command line.

`make demo` runs this. The results are in build/demo/.
"""

import subprocess
import sys
from pathlib import Path

import onnx

ROOT = Path(__file__).resolve().parent.parent
MODELS = Path("examples/models")
RESULTS = Path("build/demo")


def main() -> int:
    """Optimise each model, and say what was gained."""
    (ROOT / RESULTS).mkdir(parents=True, exist_ok=True)
    for source in sorted(path.name for path in (ROOT / MODELS).glob("*.onnx")):
        command = ["optimize", str(MODELS / source), str(RESULTS / source), "-O3", "--verify"]
        print(f"$ tiered {' '.join(command)}", flush=True)
        status = subprocess.call([sys.executable, "-m", "tiered", *command], cwd=ROOT)
        if status:
            return status
        print()
    print(_gained())
    return 0


def _gained() -> str:
    """Return one line: how many nodes and bytes the results have of the originals."""
    sources = sorted((ROOT / MODELS).glob("*.onnx"))
    results = [ROOT / RESULTS / source.name for source in sources]
    nodes, left = (sum(len(onnx.load(f).graph.node) for f in each) for each in (sources, results))
    before, after = (sum(file.stat().st_size for file in each) for each in (sources, results))
    return (
        f"{len(sources)} models, verified: {nodes:,} nodes are now {left:,} ({left / nodes:.0%}), "
        f"{before:,} bytes are now {after:,} ({after / before:.0%}); results in {RESULTS}"
    )


if __name__ == "__main__":
    sys.exit(main())
