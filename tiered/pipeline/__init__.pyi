from tiered.pipeline.base import Pipeline as Pipeline
from tiered.pipeline.base import Step as Step
from tiered.pipeline.default import default_pipeline as default_pipeline
from tiered.pipeline.edits import (
    edited as edited,
)
from tiered.pipeline.edits import (
    pipeline_diff as pipeline_diff,
)
from tiered.pipeline.edits import (
    pipeline_for as pipeline_for,
)
from tiered.pipeline.fixpoint import Fixpoint as Fixpoint
from tiered.pipeline.sequential import Sequential as Sequential
from tiered.pipeline.sequential import parse_pipeline as parse_pipeline

__all__: list[str]
