"""Verification of merged and split models: the whole computes what the parts compute, in turn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from tiered.graph.io.export import export_model
from tiered.runtime.compare.outputs import Comparison, compare
from tiered.runtime.external_data import with_files
from tiered.runtime.inputs.samples import Source, Wanted, read_samples, samples_for
from tiered.runtime.worker.client import shared_worker
from tiered.support.errors import VerificationError
from tiered.verify.random_values import random_outputs
from tiered.verify.sliced_session import open_model

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from tiered.graph import Model
    from tiered.runtime.session import Runner


def check_merged(
    first: Model,
    second: Model,
    merged: Model,
    names: Mapping[str, str],
    inputs: Iterable[Source] = (),
) -> list[Comparison]:
    """Run two models one after the other, and the merged one, and compare all outputs bit by bit.

    Args:
        first, second: the models before they were merged.
        merged: the merged model.
        names: the name in the merged model of each input and output of the second model.
        inputs: samples of the merged model; made without any.

    Raises:
        VerificationError: an output differs.
        RuntimeFailure: onnxruntime does not run one of the models.
    """
    found = []
    proto = export_model(merged, is_bare=True)
    wanted = Wanted(given=read_samples(inputs))
    with _opened(merged) as whole, _opened(first) as one, _opened(second) as two:
        for sample in samples_for(proto, whole, wanted):
            feeds = sample.inputs.feeds
            values = {**feeds, **one.run({name: feeds[name] for name in one.inputs})}
            made = two.run({name: values[names[name]] for name in two.inputs})
            values |= {names[name]: value for name, value in made.items()}
            results = whole.run(feeds)
            random = random_outputs(proto, whole, [feeds], [results])
            expected = {name: values[name] for name in results}
            found.append(compare(expected, results, random=random))
            if not found[-1].ok:
                raise VerificationError(
                    f"the merged model computes something else than the two models: {found[-1]}\n"
                    f"  inputs      {sample.label}"
                )
    return found


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
        RuntimeFailure: onnxruntime does not run the model or a part.
    """
    found = []
    proto = export_model(whole, is_bare=True)
    wanted = Wanted(given=read_samples(inputs))
    with _opened(whole) as session:
        for sample in samples_for(proto, session, wanted):
            expected = session.run(sample.inputs.feeds)
            values = dict(sample.inputs.feeds)
            for part in parts:
                with _opened(part) as one:
                    values |= one.run({name: values[name] for name in one.inputs})
            random = random_outputs(proto, session, [sample.inputs.feeds], [expected])
            made = {name: values[name] for name in expected}
            found.append(compare(expected, made, random=random))
            if not found[-1].ok:
                raise VerificationError(
                    f"the parts compute something else than the model: {found[-1]}\n"
                    f"  inputs      {sample.label}"
                )
    return found


def _opened(model: Model) -> AbstractContextManager[Runner]:
    proto = export_model(model, is_bare=True)
    folder = with_files(proto, model.folder)
    return open_model(shared_worker(), proto, folder=folder)
