"""Rewrites that feed each other, over the whole default pipeline: `make fuzz-nested`.

The models are those that the tests of the passes rewrite: under themselves and each other, beside
each other with shared operands, in branches, loops and functions.
"""

import random
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import cyclopts
from onnx import ModelProto

from tests.conformance.certified import Certifying
from tests.conformance.fuzz_passes import NotRunnable, search, trial
from tests.conformance.judge import (
    Failure,
    Optimize,
    Subject,
    Trial,
    checker_verdict,
    judge_levels,
    open_on_onnxruntime,
    optimize,
)
from tests.conformance.nested.compose import composed
from tests.conformance.nested.examples import at_other_size, examples_of, pipeline_passes
from tiered.passes import PassInfo
from tiered.runtime import make_inputs
from tiered.runtime.compare.outputs import compare
from tiered.support.errors import ModelError, RuntimeFailure

LEVELS = (1, 2, 3, 4)


def nested_model(source: random.Random, passes: Sequence[PassInfo] | None = None) -> ModelProto:
    """Return a model of two to four examples: most of one pass, twice the same one often."""
    infos = [info for info in passes or pipeline_passes() if examples_of(info)]
    main = source.choice(infos)
    examples: list[ModelProto] = []
    for _ in range(source.randint(2, 4)):
        if examples and source.random() < 0.4:
            example = source.choice(examples)
        else:
            info = main if source.random() < 0.6 else source.choice(infos)
            example = source.choice(examples_of(info))
        examples.append(at_other_size(source, example) if source.random() < 0.4 else example)
    return composed(source, examples)


def faults_of(
    source: random.Random,
    levels: Sequence[int] = LEVELS,
    passes: Sequence[PassInfo] | None = None,
    *,
    optimize: Optimize = optimize,
) -> tuple[ModelProto, list[Failure]]:
    """Make a model, and return it with all that is wrong with what the pipeline makes of it.

    Raises:
        NotRunnable: there is nothing to compare with.
    """
    model = nested_model(source, passes)
    if verdict := checker_verdict(model, full=True):
        raise NotRunnable(verdict)
    try:
        trials = _trials(model)
    except (ModelError, RuntimeFailure) as error:
        raise NotRunnable(str(error)) from error
    subject = Subject(model, open_on_onnxruntime, trials)
    _, failures = judge_levels(subject, levels, optimize, lambda stage: None)
    return model, failures


def _trials(model: ModelProto) -> tuple[Trial, ...]:
    run = open_on_onnxruntime(model)
    trials = []
    for turn in range(4):
        feeds = make_inputs(model, seed=turn, binding=turn % 2, special=turn > 1).feeds
        try:
            expected = run(feeds)
        except RuntimeFailure:
            if turn == 0:
                raise
            continue
        if compare(expected, run(feeds)).ok:
            trials.append(trial(f"inputs {turn}", model, feeds, expected))
    return tuple(trials)


def main(
    *,
    minutes: float = 10.0,
    seed: int = 0,
    levels: str = "1,2,3,4",
    folder: Path = Path("build/nested"),
    certify: bool = False,
) -> None:
    """Judge nested rewrites, one number after the other, and keep the models that show a fault.

    Args:
        minutes: how long, of the processor's time.
        seed: the first number.
        levels: the optimisation levels, separated by commas.
        folder: where the models go.
        certify: whether each rewrite is certified, too: what is wrong must not be proved.
    """
    found = faults_of if not certify else partial(faults_of, optimize=Certifying())
    search(found, minutes=minutes, seed=seed, levels=levels, folder=folder)


if __name__ == "__main__":
    cyclopts.run(main)
