"""tiered: passes over ONNX models that people can trust.

The names below load on first use; `import tiered` loads neither onnx nor onnxruntime.
"""

import sys

from tiered.support.loading import MovedPackages, load_later

__version__ = "0.2.0"

__getattr__, __dir__ = load_later(__name__, moved="tiered.support.moved")
sys.meta_path.append(MovedPackages(__name__, "tiered.support.moved"))
