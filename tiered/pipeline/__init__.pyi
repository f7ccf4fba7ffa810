from tiered.pipeline.default import default_pipeline as default_pipeline
from tiered.pipeline.edits import (
    edited as edited,
    pipeline_diff as pipeline_diff,
    pipeline_for as pipeline_for,
)
from tiered.pipeline.fixpoint import Fixpoint as Fixpoint
from tiered.pipeline.named_passes import get_pass as get_pass
from tiered.pipeline.pipeline_base import Pipeline as Pipeline, PipelineStep as PipelineStep
from tiered.pipeline.sequential import Sequential as Sequential, parse_pipeline as parse_pipeline

__all__: list[str]
