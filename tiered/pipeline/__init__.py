"""Pipelines: Sequential, Fixpoint, their text, the default order, optimize."""

# Makes the names "default" and "streamline" and the keyword "fix" known to pipeline text, whichever
# module is asked.
import tiered.pipeline.default as _default
import tiered.pipeline.fixpoint as _fixpoint
import tiered.pipeline.streamline as _streamline
from tiered.support.loading import load_later

__getattr__, __dir__ = load_later(__name__)
del _default, _fixpoint, _streamline
