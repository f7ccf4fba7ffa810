"""The networkx view of a model, kept in step with ONNX, edit by edit."""

from tiered.support.loading import load_later

__getattr__, __dir__ = load_later(__name__)
