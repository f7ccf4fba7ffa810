"""Gradients: reverse mode on ONNX graphs, in plain operators."""

from tiered.support.loading import load_later

__getattr__, __dir__ = load_later(__name__)
