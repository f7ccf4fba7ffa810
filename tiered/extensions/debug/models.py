"""Two models compared output by output."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import onnx

from tiered.extensions.debug.pipeline_runs import ModelLike, load, samples_of
from tiered.extensions.debug.runtimes import Referee, refereed
from tiered.graph.core.dtypes import is_float
from tiered.graph.shape_inference.set_input_shapes import check_shapes
from tiered.runtime.compare.outputs import Comparison, OutputDifference, compare
from tiered.runtime.inputs.make import Inputs
from tiered.runtime.inputs.samples import Source, in_dtypes_of
from tiered.runtime.session import Runner, as_proto
from tiered.support.errors import RuntimeFailure, UsageError, VerificationError
from tiered.support.numerics import Numerics, Promise
from tiered.verify.methods import computed_in
from tiered.verify.random_values import random_outputs


@dataclass(frozen=True)
class OutputRow:
    """One output of both models.

    Attributes:
        difference: how far apart they are, and whether that is allowed.
        dtype, shape: of the first model's output; None for sequences, maps and optionals.
        argmax: the share of rows along the last axis with equal argmax;
            None where that has no meaning.
        nans: how many NaNs each of the two has.
    """

    difference: OutputDifference
    dtype: str | None = None
    shape: tuple[int, ...] | None = None
    argmax: float | None = None
    nans: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Trial:
    """Both models on the same inputs; `dims` are the sizes of the symbolic ones."""

    rows: tuple[OutputRow, ...]
    dims: Mapping[str, int]
    rules: Mapping[str, str]

    @property
    def ok(self) -> bool:
        return all(row.difference.ok for row in self.rows)


@dataclass(frozen=True)
class ModelComparison:
    """Two models on all the inputs that were tried; `referee` is the runtime that ran them."""

    trials: tuple[Trial, ...]
    numerics: Promise | Numerics
    referee: Referee = field(default_factory=Referee)

    @property
    def ok(self) -> bool:
        return all(trial.ok for trial in self.trials)

    @property
    def not_comparable(self) -> tuple[str, ...]:
        """The outputs that were not compared, each with the reason."""
        rows = (row.difference for trial in self.trials for row in trial.rows)
        return tuple(dict.fromkeys(str(found) for found in rows if found.note))

    @property
    def is_empty(self) -> bool:
        """Whether the numbers of no output were compared."""
        return all(row.difference.note for trial in self.trials for row in trial.rows)

    def remarks(self, agreed: str) -> Iterator[str]:
        """Yield the text for outputs that agree, if some were compared, and those that were not."""
        if not self.is_empty:
            yield agreed
        yield from self.not_comparable

    def raise_if_different(self, label: str = "the second model") -> None:
        """Raise if an output differs by more than is allowed.

        Raises:
            VerificationError: it names the outputs.
        """
        failing = [row.difference for trial in self.trials for row in trial.rows]
        failing = [difference for difference in failing if not difference.ok]
        if failing:
            rows = "\n  ".join(dict.fromkeys(map(str, failing)))
            raise VerificationError(
                f"{label} computes something else (allowed: {self.numerics})\n  {rows}"
            )


def compare_models(
    first: ModelLike,
    second: ModelLike,
    *,
    inputs: Iterable[Source] = (),
    seed: int = 0,
    numerics: Promise | Numerics | str | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    min_cosine: float | None = None,
    shapes: Mapping[str, Sequence[int | str]] | None = None,
) -> ModelComparison:
    """Run two models on the same inputs and compare each output.

    onnxruntime runs them, unless one of them has 16-bit floats; see `debug/runtimes.py`.

    Args:
        first: the model that is right; a file, so that it finds its external data, or a proto.
        second: the model to compare with it.
        inputs: files, folders or arrays; by default two sets are made for the first model. Floats
            are fed to the second in its dtypes.
        seed: of the inputs that are made.
        numerics, rtol, atol, min_cosine: what is allowed; see `tiered.runtime.compare.outputs`.
            By default reassociating, or approximate where a cosine is given.
        shapes: the dims of inputs that are made, by name of the input, as far as they are sizes.

    Raises:
        RuntimeFailure: the first model does not run.
        VerificationError: the first model runs, the second does not.
        UsageError: a tolerance that the numeric class has not, or the second model has an input
            that the first lacks, or `shapes` one that the first lacks.
        ShapeError: `shapes` has another rank or size than the first model fixes.
    """
    promised = numerics if isinstance(numerics, Promise) else class_of(numerics, min_cosine)
    held = promised if isinstance(promised, Promise) else Promise(promised)
    model = load(first)
    check_shapes(model, shapes or {})
    held = held.changed(computed=computed_in(model))
    allowed = partial(compare, numerics=held, rtol=rtol, atol=atol, min_cosine=min_cosine)
    sources = list(inputs)
    is_close = held.numerics in (Numerics.EXACT, Numerics.REASSOCIATING)
    retyped = partial(in_dtypes_of, as_proto(second))
    sizes = _sizes(first, second, shapes or {})

    def compared(referee: Referee) -> ModelComparison:
        with referee.open(first) as original, _second(second, referee) as other:
            _check_inputs(original, other, as_proto(second))
            samples = samples_of(first, original, sources, seed, varied=is_close, shapes=sizes)
            fed = [sample.feeds for sample in samples]
            pairs = [_run(original, other, feeds, retyped) for feeds in fed]
            random = random_outputs(as_proto(first), original, fed, [one for one, _ in pairs])
            refed = [retyped(feeds) for feeds in fed]
            random |= random_outputs(as_proto(second), other, refed, [two for _, two in pairs])
            trials = tuple(
                _trial(*pair, sample, partial(allowed, random=random))
                for pair, sample in zip(pairs, samples, strict=True)
            )
        return ModelComparison(trials, promised, referee)

    return refereed(first, second, compared)


def _sizes(
    first: ModelLike, second: ModelLike, given: Mapping[str, Sequence[int | str]]
) -> dict[str, Sequence[int | str]]:
    """Return the dims of inputs: those that the second model fixes, then those that are given."""
    dims = [
        {info.name: info.type.tensor_type.shape.dim for info in as_proto(each).graph.input}
        for each in (first, second)
    ]
    found = {**given}
    for name, fixed in dims[1].items():
        wanted = given.get(name, [-1] * len(fixed))
        if not len(wanted) == len(fixed) == len(dims[0].get(name, ())):
            continue
        sizes = [
            dim.dim_value if dim.dim_value > 0 else size
            for dim, size in zip(fixed, wanted, strict=True)
        ]
        if any(size != -1 for size in sizes):
            found[name] = sizes
    return found


def class_of(numerics: Numerics | str | None, min_cosine: float | None) -> Numerics:
    """Return the numeric class that was asked for; a cosine alone asks for approximate."""
    if numerics is not None:
        return Numerics(numerics)
    return Numerics.REASSOCIATING if min_cosine is None else Numerics.APPROXIMATE


@contextmanager
def _second(model: ModelLike, referee: Referee) -> Iterator[Runner]:
    with ExitStack() as stack:
        try:
            session = stack.enter_context(referee.open(model))
        except RuntimeFailure as error:
            raise VerificationError(
                f"the first model opens, but not the second: {error}"
            ) from error
        yield session


def _check_inputs(first: Runner, second: Runner, proto: onnx.ModelProto) -> None:
    """Check that the second model needs no input that the first has not; defaults are not needed.

    Raises:
        UsageError: it does; both lists of names are in the message.
    """
    given = {*first.inputs, *(tensor.name for tensor in proto.graph.initializer)}
    lacking = [name for name in second.inputs if name not in given]
    if lacking:
        one, other = (", ".join(map(repr, each.inputs)) or "none" for each in (first, second))
        raise UsageError(
            f"the second model needs the input{'s' if len(lacking) > 1 else ''} "
            f"{', '.join(map(repr, lacking))}, which the first lacks: the first has {one}, the "
            f"second {other}; `tiered optimize --passes 'rename{{tensors={{old: new}}}}'` gives an "
            "input another name"
        )


def _run(
    first: Runner,
    second: Runner,
    feeds: Mapping[str, Any],
    retyped: Callable[[Mapping[str, Any]], Mapping[str, Any]],
) -> tuple[dict[str, Any], dict[str, Any]]:
    expected = first.run(feeds)
    try:
        return expected, second.run(retyped(feeds))
    except RuntimeFailure as error:
        raise VerificationError(f"the first model runs, but not the second: {error}") from error


def _trial(
    expected: Mapping[str, Any],
    actual: Mapping[str, Any],
    inputs: Inputs,
    allowed: Callable[..., Comparison],
) -> Trial:
    rows = tuple(
        describe_output(difference, expected.get(difference.name), actual.get(difference.name))
        for difference in allowed(expected, actual).outputs
    )
    return Trial(rows, inputs.dims, inputs.rules)


def describe_output(difference: OutputDifference, expected: Any, actual: Any) -> OutputRow:
    """Return the comparison of an output, with figures of its values."""
    if not isinstance(expected, np.ndarray):
        return OutputRow(difference)
    dtype = "string" if expected.dtype.kind in "OUS" else expected.dtype.name
    if not isinstance(actual, np.ndarray) or not is_float(expected.dtype):
        return OutputRow(difference, dtype, expected.shape)
    nans = _count_nans(expected), _count_nans(actual) if is_float(actual.dtype) else 0
    agreement = _argmax_agreement(expected, actual)
    return OutputRow(difference, dtype, expected.shape, agreement, nans)


def _count_nans(array: np.ndarray[Any, Any]) -> int:
    return int(np.isnan(array.astype(np.float64)).sum())


def _argmax_agreement(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> float | None:
    if a.shape != b.shape or a.ndim == 0 or a.shape[-1] < 2 or a.size == 0:
        return None
    wide = [array.astype(np.float64) for array in (a, b)]
    return float((wide[0].argmax(axis=-1) == wide[1].argmax(axis=-1)).mean())
