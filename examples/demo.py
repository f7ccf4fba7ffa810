"""Optimise the models of examples/models at -O3, verified, through the command line.

`make demo` runs this. The results are in build/demo/.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODELS = Path("examples/models")
RESULTS = Path("build/demo")


def main() -> int:
    (ROOT / RESULTS).mkdir(parents=True, exist_ok=True)
    for source in sorted(path.name for path in (ROOT / MODELS).glob("*.onnx")):
        command = ["optimize", str(MODELS / source), str(RESULTS / source), "-O3", "--verify"]
        print(f"$ tiered {' '.join(command)}", flush=True)
        status = subprocess.call([sys.executable, "-m", "tiered", *command], cwd=ROOT)
        if status:
            return status
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
