"""How passes are put together: Sequential, Fixpoint, their text, the default order, optimize."""

from tiered.pipeline.base import Pipeline, Step
from tiered.pipeline.default import default_pipeline
from tiered.pipeline.edits import edited, pipeline_diff, pipeline_for
from tiered.pipeline.fixpoint import Fixpoint
from tiered.pipeline.sequential import Sequential
from tiered.pipeline.text import parse_pipeline

__all__ = [
    "Fixpoint",
    "Pipeline",
    "Sequential",
    "Step",
    "default_pipeline",
    "edited",
    "parse_pipeline",
    "pipeline_diff",
    "pipeline_for",
]
