"""Run models on onnxruntime, compare their outputs, and make inputs that they accept.

The names below load on first use. The function `compare` is not among them, because the module
`tiered.runtime.compare.outputs` has its name: `from tiered.runtime.compare.outputs import compare`.
"""

from tiered.support.loading import load_later

__getattr__, __dir__ = load_later(__name__)
