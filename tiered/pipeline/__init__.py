"""Pipelines: Sequential, Fixpoint, their text, the default order, optimize."""

# Makes the name "default" and the keyword "fix" known to pipeline text, whichever module is asked.
from tiered.pipeline import default as _default, fixpoint as _fixpoint
from tiered.support.loading import load_later

__getattr__, __dir__ = load_later(__name__)
del _default, _fixpoint
