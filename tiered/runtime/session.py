"""Run a model: on onnxruntime without its own optimisations, or on onnx.reference."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tiered.graph.core.dtypes import DataType, is_float
from tiered.runtime.opening import (
    Setting,
    check_provider,
    nodes_by_provider,
    provider_of,
    session_options,
)
from tiered.support.errors import ModelError, RuntimeFailure

if TYPE_CHECKING:
    import onnx

    ModelLike = onnx.ModelProto | bytes | str | os.PathLike[str]


# The tensor types that onnxruntime has and numpy has not, by onnxruntime's names.
_RAW_TYPES = {
    f"tensor({dtype.name.lower()})": dtype
    for dtype in DataType
    if not (dtype.is_native or dtype is DataType.STRING)
}
_LONGEST_WORDS = 600  # characters of a runtime's message that ours repeats
_RAW_BY_DTYPE = {raw.numpy: raw for raw in _RAW_TYPES.values()}


class Runner(Protocol):
    """A model that is open, wherever: `Session`, `Reference`, `WorkerSession`."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    def run(
        self, feeds: Mapping[str, Any], outputs: Sequence[str] | None = None
    ) -> dict[str, Any]: ...


class Session:
    """A model opened by onnxruntime: CPU, its own optimisations off, one thread, silent.

    The same feeds produce the same outputs, run after run (random operators without a `seed`
    attribute excepted: onnxruntime draws new ones). Constant matrices are not packed: a product
    of packed ones sums in another order, so that it would matter whether a factor is a constant or
    computed from constants.

    Args:
        model: a ModelProto, its bytes, or the path of a file (required for external data).
        threads: onnxruntime's intra-op threads; more than one may change the order of sums.
        label: the name of the model in messages.
        folder: where the external data is of a model that is no file.
        libraries: of custom operators, which onnxruntime registers.
        setting: another one than "reproducible"; `threads` is then that of onnxruntime.

    Raises:
        RuntimeFailure: onnxruntime cannot load the model.
    """

    def __init__(
        self,
        model: ModelLike,
        *,
        threads: int = 1,
        label: str = "",
        folder: str = "",
        setting: Setting = "reproducible",
        libraries: Sequence[str] = (),
    ) -> None:
        ort = _onnxruntime()
        self._label = label or label_of(model)
        options = session_options(ort, setting, threads, folder)
        source = loadable(model, self._label)
        try:
            for library in libraries:
                options.register_custom_ops_library(library)
            self._session: Any = ort.InferenceSession(
                source, options, providers=[provider_of(setting)]
            )
        except Exception as error:  # its errors have no common base but Exception
            raise RuntimeFailure(
                f"onnxruntime cannot load {self._label}: {_words(error)}"
            ) from error
        check_provider(self._session.get_providers(), setting, self._label)
        self.nodes_by_provider = nodes_by_provider(self._session, setting, self._label)
        self._input_types = {i.name: str(i.type) for i in self._session.get_inputs()}
        for i in self._session.get_overridable_initializers():
            self._input_types[i.name] = str(i.type)
        self._output_types = {o.name: str(o.type) for o in self._session.get_outputs()}
        self.inputs: tuple[str, ...] = tuple(i.name for i in self._session.get_inputs())
        self.outputs: tuple[str, ...] = tuple(self._output_types)

    def run(self, feeds: Mapping[str, Any], outputs: Sequence[str] | None = None) -> dict[str, Any]:
        """Return each output by name: arrays, lists (sequences), dicts (maps), None (optional).

        Args:
            feeds: the same kinds of values; bfloat16, float8 and 4- or 2-bit types are ml_dtypes
                arrays on both sides. Overridable initializers may be fed and need not be.
            outputs: only these, in this order; None for all.

        Raises:
            RuntimeFailure: onnxruntime refuses the feeds or fails on them.
        """
        names = self.outputs if outputs is None else tuple(outputs)
        for name in names:
            if name not in self._output_types:
                raise RuntimeFailure(f"cannot run {self._label}: it has no output {name!r}")
        if not names:  # onnxruntime returns all outputs for an empty list
            return {}
        raw_outputs = [name for name in names if self._output_types[name] in _RAW_TYPES]
        try:
            fed = {name: self._fed(name, value) for name, value in feeds.items()}
            if not raw_outputs:
                return dict(zip(names, self._session.run(names, fed), strict=True))
            return self._run_raw(fed, names, raw_outputs)
        except RuntimeFailure:
            raise
        except Exception as error:  # its errors have no common base but Exception
            raise RuntimeFailure(
                f"onnxruntime failed while running {self._label}: {_words(error)}"
            ) from error

    def prepared(self, feeds: Mapping[str, Any]) -> Callable[[], Any]:
        """Return a function that runs the model on feeds that are converted once, to time it.

        Raises:
            RuntimeFailure: onnxruntime refuses the feeds.
        """
        fed = {name: self._fed(name, value) for name, value in feeds.items()}
        raw = [name for name in self.outputs if self._output_types[name] in _RAW_TYPES]
        if raw:
            return partial(self._run_raw, fed, self.outputs, raw)
        return partial(self._session.run, self.outputs, fed)

    def end_profile(self) -> str:
        """End the profile of an `Opening` that asked for one, and return its file."""
        return str(self._session.end_profiling())

    def _fed(self, name: str, value: Any) -> Any:
        """Return a value in the form that onnxruntime's binding takes."""
        if not isinstance(value, (np.ndarray, np.generic)):
            if self._input_types.get(name, "").startswith("tensor("):
                raise RuntimeFailure(
                    f"cannot run {self._label}: input {name!r} takes an array, not "
                    f"{type(value).__name__}"
                )
            return value
        array = np.asarray(value)
        if array.dtype.kind == "S":  # the binding would read past these
            return np.char.decode(array, "utf-8").astype(object)
        raw = _RAW_BY_DTYPE.get(array.dtype)
        if raw is not None:
            return _to_ort_value(array, raw)
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        return np.asarray(array, order="C")

    def _run_raw(
        self, fed: Mapping[str, Any], names: Sequence[str], raw_outputs: Sequence[str]
    ) -> dict[str, Any]:
        """Run a model with outputs of a type that only OrtValue has."""
        ort = _onnxruntime()
        values: dict[str, Any] = {}
        for name, value in fed.items():
            if isinstance(value, ort.OrtValue):
                values[name] = value
            elif isinstance(value, np.ndarray) and value.dtype.kind not in "OU":
                values[name] = ort.OrtValue.ortvalue_from_numpy(value)
            else:
                raise RuntimeFailure(
                    f"cannot run {self._label}: onnxruntime's Python API cannot feed input "
                    f"{name!r} ({self._input_types.get(name, 'unknown')}) while output "
                    f"{raw_outputs[0]!r} is {self._output_types[raw_outputs[0]]}; "
                    "cast that output to float first"
                )
        tensors = [n for n in names if self._output_types[n].startswith("tensor(")]
        others = [n for n in names if n not in tensors]
        results = dict(
            zip(tensors, self._session.run_with_ort_values(tensors, values), strict=True)
        )
        # Sequences, maps and optionals cannot be read out of an OrtValue (an empty optional
        # crashes the process), so they come from a second run.
        plain = self._session.run(others, fed) if others else []
        outputs = dict(zip(others, plain, strict=True))
        for name, result in results.items():
            raw = _RAW_TYPES.get(self._output_types[name])
            outputs[name] = result.numpy() if raw is None else _from_ort_value(result, raw)
        return {name: outputs[name] for name in names}


class Reference:
    """A model opened by onnx.reference: slower by far, and free of onnxruntime's liberties.

    Args:
        model, label: as of `Session`.

    Raises:
        RuntimeFailure: onnx.reference cannot load the model.
    """

    def __init__(self, model: ModelLike, *, label: str = "") -> None:
        from onnx.reference import ReferenceEvaluator

        from tiered.runtime.reference_ops import OPERATORS

        self._label = label or label_of(model)
        source: Any = os.fspath(model) if isinstance(model, os.PathLike) else model
        try:
            self._evaluator = ReferenceEvaluator(source, new_ops=OPERATORS)
        except Exception as error:  # anything may come out of parsing and of unknown operators
            raise RuntimeFailure(
                f"onnx.reference cannot load {self._label}: {_words(error)}"
            ) from error
        self.inputs: tuple[str, ...] = tuple(map(str, self._evaluator.input_names))
        self.outputs: tuple[str, ...] = tuple(map(str, self._evaluator.output_names))

    def run(self, feeds: Mapping[str, Any], outputs: Sequence[str] | None = None) -> dict[str, Any]:
        """Return each output by name, as `Session.run` does.

        Raises:
            RuntimeFailure: onnx.reference fails on the feeds.
        """
        names = self.outputs if outputs is None else tuple(outputs)
        try:
            results: Any = self._evaluator.run(list(names), dict(feeds))
        except Exception as error:  # its operators raise whatever numpy raises
            raise RuntimeFailure(
                f"onnx.reference failed while running {self._label}: {_words(error)}"
            ) from error
        return {name: _plain(result) for name, result in zip(names, results, strict=True)}


def as_proto(model: ModelLike) -> onnx.ModelProto:
    """Return a model, of a file without its external data.

    Raises:
        ModelError: there is no model in the file or the bytes.
    """
    import onnx
    from google.protobuf.message import DecodeError

    if isinstance(model, onnx.ModelProto):
        return model
    try:
        if isinstance(model, bytes):
            return onnx.load_model_from_string(model)
        return onnx.load(os.fspath(model), load_external_data=False)
    except (OSError, DecodeError) as error:
        what = "the bytes" if isinstance(model, bytes) else repr(os.fspath(model))
        raise ModelError(f"cannot read a model from {what}: {error}") from error


def run(model: ModelLike, feeds: Mapping[str, Any]) -> dict[str, Any]:
    """Run a model once on onnxruntime, as `Session` does."""
    return Session(model).run(feeds)


def run_reference(model: ModelLike, feeds: Mapping[str, Any]) -> dict[str, Any]:
    """Run a model once on onnx.reference, with the results and errors that `run` has."""
    return Reference(model).run(feeds)


def _plain(value: Any) -> Any:
    """Return a result of onnx.reference in the form that `Session.run` returns."""
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if value is None or isinstance(value, dict):
        return value
    array = np.asarray(value)
    return array.astype(object) if array.dtype.kind in "US" else array


def _to_ort_value(array: np.ndarray[Any, Any], raw: DataType) -> Any:
    ort_value = _onnxruntime().OrtValue
    if raw.bits >= 8:
        bits = np.asarray(array, order="C").view(f"u{raw.bits // 8}")
        return ort_value.ortvalue_from_numpy_with_onnx_type(bits, raw.value)
    # `..._with_onnx_type` would take one byte for each element and read the wrong ones.
    packed = _pack(array, raw)
    value = ort_value.ortvalue_from_shape_and_type(list(array.shape), raw.value)
    ctypes.memmove(value.data_ptr(), packed, len(packed))
    return value


def _from_ort_value(value: Any, raw: DataType) -> np.ndarray[Any, Any]:
    shape = tuple(value.shape())
    size = value.tensor_size_in_bytes()
    data = ctypes.string_at(value.data_ptr(), size) if size else b""
    if raw.bits >= 8:
        return np.frombuffer(bytearray(data), raw.numpy).reshape(shape)
    return _unpack(data, shape, raw)


def _pack(array: np.ndarray[Any, Any], raw: DataType) -> bytes:
    """Return the bytes of a 4- or 2-bit tensor: elements in order, low bits first."""
    per_byte = 8 // raw.bits
    flat = array.ravel()
    codes = flat.view(np.uint8) if is_float(raw.numpy) else flat.astype(np.int8).view(np.uint8)
    codes = codes & np.uint8((1 << raw.bits) - 1)
    rows = np.zeros((-(-flat.size // per_byte), per_byte), np.uint8)
    rows.reshape(-1)[: flat.size] = codes
    shifts = np.arange(per_byte, dtype=np.uint8) * np.uint8(raw.bits)
    return bytes(np.bitwise_or.reduce(rows << shifts, axis=1).astype(np.uint8).data)


def _unpack(data: bytes, shape: tuple[int, ...], raw: DataType) -> np.ndarray[Any, Any]:
    per_byte = 8 // raw.bits
    shifts = np.arange(per_byte, dtype=np.uint8) * np.uint8(raw.bits)
    codes = (np.frombuffer(data, np.uint8)[:, None] >> shifts) & np.uint8((1 << raw.bits) - 1)
    flat = codes.ravel()[: int(np.prod(shape))]
    if is_float(raw.numpy):
        return flat.view(raw.numpy).reshape(shape)
    if raw.numpy.name.startswith("int"):
        sign = np.int8(1 << (raw.bits - 1))
        return ((flat.view(np.int8) ^ sign) - sign).astype(raw.numpy).reshape(shape)
    return flat.astype(raw.numpy).reshape(shape)


@cache
def _onnxruntime() -> Any:
    import onnxruntime

    return onnxruntime


def loadable(model: ModelLike, label: str) -> bytes | str:
    """Return the model for onnxruntime: bytes, or a path.

    Raises:
        RuntimeFailure: the model cannot be serialised.
    """
    if isinstance(model, bytes):
        return model
    if isinstance(model, (str, os.PathLike)):
        return os.fspath(model)
    try:
        return bytes(model.SerializeToString())
    except Exception as error:  # protobuf's EncodeError, or ValueError beyond 2 GiB
        raise RuntimeFailure(
            f"cannot serialise {label} ({_words(error)}); beyond 2 GiB, save it with "
            "external data and give the path"
        ) from error


def label_of(model: ModelLike) -> str:
    """Name a model in a message: its path, or its graph and outputs."""
    if isinstance(model, bytes):
        return f"a model of {len(model)} bytes"
    if isinstance(model, (str, os.PathLike)):
        return f"{os.fspath(model)!r}"
    outputs = [o.name for o in model.graph.output]
    shown = ", ".join(outputs[:3]) + (", ..." if len(outputs) > 3 else "")
    return f"model {model.graph.name!r} (outputs {shown or 'none'})"


def _words(error: BaseException) -> str:
    """Return an error's message in one line; onnxruntime's first line often has only the place."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= _LONGEST_WORDS else f"{text[:_LONGEST_WORDS]} ..."
