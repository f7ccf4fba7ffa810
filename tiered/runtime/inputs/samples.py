"""The samples that models run on: the user's, or made ones where there are none.

A source is a file or a folder:

    x.npy           the input x; of a model with one input, whatever the file is called
    feeds.npz       inputs by name
    input_0.pb      the first input, as a TensorProto, as ONNX keeps its test data
    a folder        one sample of the .npy and .pb files in it, and one of each .npz file

or a dict of arrays. A source that brings an input which the sample has already begins the next one.
A sample has all inputs of the model, and no others.
"""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tiered.graph.core.dtypes import DataType, is_float
from tiered.runtime.inputs.bound_model import BoundModel
from tiered.runtime.inputs.given_inputs import Given, check_fits, placed
from tiered.runtime.inputs.make import Inputs, dim_slots, feasible_inputs, make_inputs
from tiered.support.errors import ModelError, UsageError

if TYPE_CHECKING:
    import onnx

    from tiered.graph import Model
    from tiered.runtime.session import Runner

Source = str | os.PathLike[str] | Mapping[str, Any]
BINDINGS = 2
"""The default number of sets of sizes for the dynamic dims."""

_NUMBERED = re.compile(r"input_(\d+)")


@dataclass(frozen=True)
class Wanted:
    """Which samples to run on.

    Attributes:
        given: the user's samples; without any, inputs are made.
        bindings: how many sets of sizes the dynamic dims get, where inputs are made.
        seed: of the random numbers.
        varied: whether the floats of the later sets have offsets, zeros and scales over decades.
        edge_values: run once more on ±0, ±Inf, NaN, denormals and extremes.
        shapes: the dims of inputs that are made, by name of the input, as far as they are sizes.
        added: inputs that a pass added: no sample of the user has them, so they are made.
    """

    given: tuple[Given, ...] = ()
    bindings: int = BINDINGS
    seed: int = 0
    varied: bool = True
    edge_values: bool = False
    shapes: Mapping[str, Sequence[int | str]] = field(default_factory=dict)
    added: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Sample:
    """Inputs with their name in messages."""

    label: str
    inputs: Inputs

    @property
    def is_given(self) -> bool:
        """Whether an input of it is the user's."""
        return "given" in self.inputs.rules.values()

    @property
    def sizes(self) -> str:
        """The sizes of the dynamic dims, as a string."""
        return ", ".join(f"{dim}={size}" for dim, size in self.inputs.dims.items())

    def __str__(self) -> str:
        lines = [f"{self.label}{f' ({self.sizes})' if self.sizes else ''}"]
        for name, rule in self.inputs.rules.items():
            shape = getattr(self.inputs.feeds.get(name), "shape", None)
            form = "" if shape is None else f" {list(shape)}"
            lines.append(f"  {name}{form}: {rule}" if name != "*" else f"  sizes: {rule}")
        return "\n".join(lines)


def samples_for(
    model: onnx.ModelProto, session: Runner, wanted: Wanted, bound: BoundModel | None = None
) -> list[Sample]:
    """Return the samples of a model; it accepted the made ones.

    Args:
        model: the model, as it is open in the session.
        session: where it is tried.
        wanted: which samples to return.
        bound: the view of the model, for a caller that asks more than once; opened here otherwise.

    Raises:
        UsageError: a sample lacks an input, or has one that the model lacks, or an array has
            another dtype or other dims than its input.
        RuntimeFailure: no inputs were found that the model accepts.
    """
    found = [
        _completed(model, session, given, wanted, _label(number))
        for number, given in enumerate(wanted.given, 1)
    ]
    made = partial(
        feasible_inputs,
        model,
        seed=wanted.seed,
        dims=_sizes_of(model, wanted.shapes),
        session=session,
        bound=bound or BoundModel(model),
    )
    if not found:
        for binding in range(wanted.bindings):
            inputs = made(binding=binding, varied=wanted.varied and binding > 0)
            found.append(Sample(f"generated inputs {binding + 1}", inputs))
            if not inputs.dims and not wanted.seed and binding:
                break
    if wanted.edge_values:
        found.append(Sample("edge values", made(special=True)))
    return found


def unfit_remark(error: UsageError) -> str:
    """Return the remark on the user's samples, which a pass made unfit for the model."""
    return f"the given inputs do not fit the model any more, so others were made: {error}"


def in_dtypes_of(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> Given:
    """Return feeds whose floats have the float dtypes of the inputs of a model."""
    dtypes = {info.name: info.type.tensor_type.elem_type for info in model.graph.input}
    return {name: _in_dtype(array, dtypes.get(name, 0)) for name, array in feeds.items()}


def _in_dtype(array: Any, dtype: int) -> Any:
    if not isinstance(array, np.ndarray) or not is_float(array.dtype) or not dtype:
        return array
    wanted = DataType(dtype)
    return array.astype(wanted.numpy) if wanted.is_float else array


def check_given(model: Model, given: Sequence[Given]) -> None:
    """Check that the user's samples are samples of a model, before anything runs.

    Raises:
        UsageError: one is empty, lacks an input, has one that the model lacks, or does not fit it.
    """
    inputs = [value.name for value in model.main.inputs if value.default is None]
    for number, sample in enumerate(given, 1):
        _placed(sample, inputs, model.main.input_infos, _label(number))


def _placed(
    sample: Given,
    inputs: Sequence[str],
    infos: Sequence[onnx.ValueInfoProto],
    label: str,
    added: Collection[str] = (),
) -> Given:
    """Return a user's sample by the names of the inputs of a model, which it fits."""
    overridable = {info.name for info in infos} - {*inputs}
    feeds = placed(sample, inputs, label, overridable=overridable, may_lack=added)
    check_fits(infos, feeds, label)
    return feeds


def _label(number: int) -> str:
    return f"inputs {number}"


def _completed(
    model: onnx.ModelProto, session: Runner, given: Given, wanted: Wanted, label: str
) -> Sample:
    """Return a user's sample; inputs that a pass added are made to fit it."""
    feeds = _placed(given, session.inputs, model.graph.input, label, wanted.added)
    missing = [name for name in session.inputs if name not in feeds]
    rules = dict.fromkeys(feeds, "given")
    if not missing:
        return Sample(label, Inputs(feeds, rules))
    shapes = {name: getattr(value, "shape", ()) for name, value in feeds.items()}
    dims = _sizes_of(model, wanted.shapes) | _sizes_of(model, shapes)
    made = make_inputs(model, seed=wanted.seed, dims=dims)
    values = {name: made.feeds[name] for name in missing if name in made.feeds}
    chosen = {name: made.rules[name] for name in values}
    return Sample(label, replace(made, feeds=feeds | values, rules=rules | chosen))


def _sizes_of(model: onnx.ModelProto, shapes: Mapping[str, Sequence[int | str]]) -> dict[str, int]:
    """Return the sizes of dims in shapes, by the dim's name or place."""
    sizes: dict[str, int] = {}
    for slot in dim_slots(model):
        size = dict(enumerate(shapes.get(slot.input, ()))).get(slot.axis)
        if not isinstance(slot.dim, int) and isinstance(size, int) and size >= 0:
            sizes[slot.key] = size
    return sizes


# --- reading --------------------------------------------------------------------------------------


def read_samples(sources: Iterable[Source]) -> tuple[Given, ...]:
    """Return the samples in sources.

    Raises:
        ModelError: a file cannot be read.
        UsageError: a source is of an unknown kind, or a folder has no inputs.
    """
    samples: list[Given] = []
    for source in sources:
        for part, is_whole in _parts(source):
            if is_whole or not samples or samples[-1].keys() & part.keys():
                samples.append({})
            samples[-1].update(part)
    return tuple(samples)


def _parts(source: Source) -> list[tuple[Given, bool]]:
    """Return the arrays of a source, and whether they are a sample of their own."""
    if isinstance(source, Mapping):
        return [({str(name): _value(given) for name, given in source.items()}, True)]
    path = os.fspath(source)
    if not os.path.isdir(path):
        return [(_read(path), path.endswith(".npz"))]
    files = [os.path.join(path, name) for name in sorted(os.listdir(path))]
    single = [file for file in files if _is_input(file)]
    whole = [file for file in files if file.endswith(".npz")]
    if not single and not whole:
        raise UsageError(f"{path!r} holds no inputs: expected .npy, .npz or input_0.pb files")
    parts: list[tuple[Given, bool]] = []
    if single:
        merged: Given = {}
        for file in single:
            merged.update(_read(file))
        parts.append((merged, True))
    return parts + [(_read(file), True) for file in whole]


def _value(given: Any) -> Any:
    """Return an array of numbers; a sequence of arrays, a map and an absent optional stay."""
    is_sequence = isinstance(given, list | tuple) and any(hasattr(x, "dtype") for x in given)
    return given if is_sequence or given is None or isinstance(given, dict) else np.asarray(given)


def _is_input(path: str) -> bool:
    stem, suffix = os.path.splitext(os.path.basename(path))
    return suffix == ".npy" or (suffix == ".pb" and bool(_NUMBERED.fullmatch(stem)))


def _read(path: str) -> Given:
    stem, suffix = os.path.splitext(os.path.basename(path))
    try:
        match suffix:
            case ".npy":
                return {f"{stem}{suffix}": np.load(path, allow_pickle=False)}
            case ".npz":
                with np.load(path, allow_pickle=False) as archive:
                    return {name: archive[name] for name in archive.files}
            case ".pb":
                return {_place(stem): _tensor(path)}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        # numpy takes every file that it does not know for pickled objects.
        is_other = "pickled" in str(error) or "Object arrays" in str(error)
        found = "it holds no arrays of numbers" if is_other else error
        raise ModelError(f"cannot read inputs from {path!r}: {found}") from error
    raise UsageError(f"{path!r} is no file of inputs: expected .npy, .npz, .pb, or a folder")


def _place(stem: str) -> str:
    found = _NUMBERED.fullmatch(stem)
    return f"#{int(found[1])}" if found else stem


def _tensor(path: str) -> Any:
    import onnx
    from google.protobuf.message import DecodeError

    with open(path, "rb") as file:
        try:
            return onnx.numpy_helper.to_array(onnx.TensorProto.FromString(file.read()))
        except DecodeError as error:
            raise ValueError("it holds no TensorProto") from error
