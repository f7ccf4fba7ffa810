"""Memory: which tensors are alive when, and the peak of their bytes."""

from tiered.support.loading import load_later

__getattr__, __dir__ = load_later(__name__)
