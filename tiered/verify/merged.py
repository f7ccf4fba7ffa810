"""Verification of merged and split models: the whole computes what the parts compute, in turn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from tiered.runtime.compare.outputs import Comparison, compare, left_out
from tiered.runtime.inputs.samples import Source, Wanted, read_samples, samples_for
from tiered.runtime.worker.client import shared_worker
from tiered.support.errors import TargetError, VerificationError, original_runs
from tiered.verify.baseline import RunnableModel
from tiered.verify.random_values import random_outputs
from tiered.verify.sliced_session import feeds_for, open_model

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    import onnx

    from tiered.graph import Model
    from tiered.runtime.session import Runner


def check_merged(
    models: Sequence[Model],
    merged: Model,
    names: Sequence[Mapping[str, str]],
    inputs: Iterable[Source] = (),
) -> list[Comparison]:
    """Run models one after the other, and the merged one, and compare all outputs bit by bit.

    Args:
        models: two models or more, before they were merged.
        merged: the merged model.
        names: for each model but the first, the name in the merged model of its inputs and outputs.
        inputs: samples of the merged model; made without any.

    Raises:
        VerificationError: an output differs.
        NotVerifiable: onnxruntime does not run one of the models.
        TargetError: no output can be compared.
    """
    found = list[Comparison]()
    runnable, *others = [RunnableModel.of(each) for each in (merged, *models)]
    proto = runnable.proto
    wanted = Wanted(given=read_samples(inputs))
    with ExitStack() as opened, original_runs():
        whole, *parts = [opened.enter_context(_opened(each)) for each in (runnable, *others)]
        for sample in samples_for(proto, whole, wanted):
            feeds = sample.inputs.feeds
            values = dict(feeds)
            for part, one, named in zip(parts, others, ({}, *names), strict=True):
                made = part.run(_feeds_of(one.proto, values, named))
                values |= {named.get(name, name): value for name, value in made.items()}
            results = whole.run(feeds)
            random = random_outputs(proto, whole, [feeds], [results])
            expected = {name: values[name] for name in results}
            found.append(compare(expected, results, random=random))
            if not found[-1].ok:
                raise VerificationError(
                    f"the merged model computes something else than the models: {found[-1]}\n"
                    f"  inputs      {sample.label}"
                )
    return _not_empty(found)


def check_split(
    whole: Model, parts: Sequence[Model], inputs: Iterable[Source] = ()
) -> list[Comparison]:
    """Run a model, and its parts one after the other, and compare all outputs bit by bit.

    Args:
        whole: the model before it was split.
        parts: its parts; an output of one is the input of its name of later ones.
        inputs: samples of the model; made without any.

    Raises:
        VerificationError: an output differs.
        NotVerifiable: onnxruntime does not run the model.
        RuntimeFailure: it runs the model, but not a part.
        TargetError: no output can be compared.
    """
    found = list[Comparison]()
    runnable = RunnableModel.of(whole)
    proto = runnable.proto
    wanted = Wanted(given=read_samples(inputs))
    with ExitStack() as opened:
        with original_runs():
            session = opened.enter_context(_opened(runnable))
            samples = samples_for(proto, session, wanted)
            results = [session.run(sample.inputs.feeds) for sample in samples]
        for sample, expected in zip(samples, results, strict=True):
            values = dict(sample.inputs.feeds)
            for part in map(RunnableModel.of, parts):
                with _opened(part) as one:
                    values |= one.run(feeds_for(part.proto, values))
            random = random_outputs(proto, session, [sample.inputs.feeds], [expected])
            made = {name: values[name] for name in expected}
            found.append(compare(expected, made, random=random))
            if not found[-1].ok:
                raise VerificationError(
                    f"the parts compute something else than the model: {found[-1]}\n"
                    f"  inputs      {sample.label}"
                )
    return _not_empty(found)


def _not_empty(found: list[Comparison]) -> list[Comparison]:
    """Return comparisons.

    Raises:
        TargetError: all outputs are random, or have no elements, so that none was compared.
    """
    if all(each.is_empty for each in found):
        left = "; ".join(left_out(found)) or "there are no outputs"
        raise TargetError(f"not verified: {left}")
    return found


def _feeds_of(
    proto: onnx.ModelProto, values: Mapping[str, Any], named: Mapping[str, str]
) -> dict[str, Any]:
    """Return what a model takes of values of the merged one, by its own names."""
    pairs = ((info.name, named.get(info.name, info.name)) for info in proto.graph.input)
    return feeds_for(proto, {own: values[name] for own, name in pairs if name in values})


def _opened(model: RunnableModel) -> AbstractContextManager[Runner]:
    return open_model(shared_worker(), model.proto, folder=model.folder)
