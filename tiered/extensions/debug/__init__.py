"""Debugging: compare models, blame one rewrite, extract and reduce a model that reproduces it.

The names below load on first use.
"""

from tiered.support.loading import load_later

__getattr__, __dir__ = load_later(__name__)
