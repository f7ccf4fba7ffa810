"""tiered: passes over ONNX models that people can trust.

The names below load on first use; `import tiered` loads neither onnx nor onnxruntime.
"""

from tiered.support.loading import load_later

__version__ = "0.1.0"

__getattr__, __dir__ = load_later(__name__, moved="tiered.support.moved")
