"""The mark of a result: metadata entries with digests of the model that it came from.

`tiered.source` is the digest of the model that was read, and `tiered.root` that of the first model
of a chain, if it is another one. A file is an earlier result of a model, and may be replaced, if

- its mark names this model, or it is equal to it: a run that changes nothing keeps the mark; and
- it has no property that the model and the new result lack, and that the command does not ask
  about: a higher opset, or numbers in few bits.

`tiered.promise` and `tiered.root_promise` are what the steps since the two promise; see
`tiered.extensions.preparation.promise_mark`.

Every other ONNX model is replaced only with --force. The digest is that of the content: it depends
neither on marks nor on where weights are stored, so that a chain of commands can be repeated.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from tiered.cli.output.terminal import printable
from tiered.support.errors import ModelError, UsageError
from tiered.support.mark_keys import MARK_KEYS, MARKS

if TYPE_CHECKING:
    import onnx

    from tiered.extensions.preparation.promise_mark import Carried
    from tiered.graph import Model
    from tiered.graph.core.edit import Stamp
    from tiered.passes.interface.pass_info import PassResult
    from tiered.pipeline.result import OptimizeResult

SOURCE, ROOT, PROMISE, ROOT_PROMISE = MARK_KEYS

OPSET: Final = "opset"
PRECISION: Final = "precision"

_WHOLE: Final = 1 << 22
"""Weights of up to this many bytes are hashed whole."""
_SAMPLES: Final = 1024
"""Larger ones are hashed at this number of evenly spaced places, `_SAMPLE` bytes at each."""
_SAMPLE: Final = 4096


class SourceMark(NamedTuple):
    """The mark for results of a model.

    Attributes:
        model: the model, as it was read.
        stamp: the moment when it was.
        source: its digest.
        root: the digest of the first model of its chain.
        promises: what is promised about the model that was read, by the digest of the other model.
        is_of_chain: whether the source is another file than the one that was read.
    """

    model: Model
    stamp: Stamp
    source: str
    root: str
    promises: Mapping[str, Carried] = MappingProxyType({})
    is_of_chain: bool = False

    def is_kept(self, model: Model) -> bool:
        """Return whether a result has the mark of its model: nothing was changed."""
        is_marked = mark_of(model.skeleton) is not None and not self.is_of_chain
        return is_marked and model is self.model and not model.journal.moved_since(self.stamp)


def check_replaced(*sources: str, target: str, hint: str = "") -> None:
    """Raise if the target holds an ONNX model that is not an earlier result of the sources.

    Args:
        sources: the file that is read, or the files of a result of several models.
        target: the file to write.
        hint: what else to do, for the error.

    Raises:
        UsageError: it does.
    """
    found = _read(target)
    if found is None:
        return
    mark = mark_of(found)
    read = {source: _read(source) for source in sources} if mark is not None else {}
    digests = [_digest(source, proto) for source, proto in read.items() if proto is not None]
    if len(digests) == len(sources):
        digest = _joined(digests)
        if digest in (mark, _digest(target, found)):
            return
    named = " and ".join(repr(printable(source)) for source in sources)
    raise UsageError(
        f"{printable(target)!r} is an ONNX model and not an earlier result of {named}; "
        f"use --force to replace it{hint}"
    )


def check_kept(target: str, mark: SourceMark, made: Model, asked: Collection[str]) -> None:
    """Raise if the target has a property that the model and the new result lack.

    Args:
        target: the file to write.
        mark: the mark of the result.
        made: the result.
        asked: the properties that the command decides: `OPSET`, `PRECISION`.

    Raises:
        UsageError: it does.
    """
    from tiered.graph.io.export import export_model

    assert mark.model.origin is not None, "the model was read from a file"
    _check_kept(target, (mark.model.origin, export_model(made, is_bare=True)), asked)


def check_kept_file(source: str, target: str, made: str, asked: Collection[str]) -> None:
    """Do as `check_kept`, with the source and the new result as files.

    Raises:
        UsageError: it does.
    """
    known = _read(source), _read(made)
    _check_kept(target, [proto for proto in known if proto is not None], asked)


def _check_kept(target: str, known: Sequence[onnx.ModelProto], asked: Collection[str]) -> None:
    old = _read(target)
    lost = "" if old is None else _lost(old, known, asked)
    if lost:
        raise UsageError(
            f"{printable(target)!r} has {lost}, and the new result has not; use --force to "
            "replace it"
        )


def mark_of(proto: onnx.ModelProto) -> str | None:
    """Return the digest of the model that a model came from; None if it has no mark."""
    return _entry(proto, SOURCE)


def source_mark(model: Model, source: str, result_of: str | None = None) -> SourceMark:
    """Return the mark for results of a model that was just read.

    Args:
        model: the model.
        source: its file.
        result_of: the file that the mark names instead: the first one of a chain of commands.

    Raises:
        OSError: the file cannot be read.
        ModelError: a file of external data cannot be read, or `result_of` is no model.
    """
    if result_of is not None:
        first = _read(result_of)
        if first is None:
            raise ModelError(f"--result-of {printable(result_of)!r} is no ONNX model")
        digest = _digest(result_of, first)
        root = _entry(first, ROOT) or mark_of(first) or digest
        assert model.origin is not None, "the model was read from a file"
        promises = promises_of(source, model.origin)
        stamp = model.journal.stamp()
        return SourceMark(model, stamp, digest, root, promises, is_of_chain=True)
    assert model.origin is not None, "the model was read from a file"
    promises = promises_of(source, model.origin)
    digest = next(iter(promises))
    root = _entry(model.skeleton, ROOT) or mark_of(model.skeleton) or digest
    return SourceMark(model, model.journal.stamp(), digest, root, promises)


def promises_of(path: str, proto: onnx.ModelProto) -> dict[str, Carried]:
    """Return what a model promises about others, by their digests; first that of itself, exact.

    Raises:
        OSError: the file cannot be read.
        ModelError: a file of external data cannot be read.
    """
    from tiered.extensions.preparation.promise_mark import Carried, carried_in

    found = {_digest(path, proto): Carried()}
    for key, promise in ((SOURCE, PROMISE), (ROOT, ROOT_PROMISE)):
        digest, text = _entry(proto, key), _entry(proto, promise)
        carried = None if text is None else carried_in(text)
        if digest is not None and carried is not None:
            found.setdefault(digest, carried)
    return found


def promise_between(first: str, second: str) -> Carried | None:
    """Return what the files of two models promise about each other; None if nothing.

    Both may be results of a third model.

    Raises:
        OSError: a file cannot be read.
        ModelError: a file of external data cannot be read.
    """
    protos = {path: _read(path) for path in (first, second)}
    known = [promises_of(path, proto) for path, proto in protos.items() if proto is not None]
    if len(known) < 2:
        return None
    both = [digest for digest in known[1] if digest in known[0]]
    return known[0][both[0]] + known[1][both[0]] if both else None


def joined_mark(*marks: SourceMark) -> SourceMark:
    """Return the mark for a result of several models."""
    digest = _joined([mark.source for mark in marks])
    return marks[0]._replace(source=digest, root=digest, promises={})


def write_mark(
    model: Model,
    mark: SourceMark,
    promise: Carried | None = None,
    *,
    is_stored_alike: bool = True,
) -> None:
    """Write a mark into a result; one that equals its model keeps the mark of that.

    Args:
        model: the result.
        mark: that of its model.
        promise: of the steps that made it; None if it is no result of verifiable steps.
        is_stored_alike: whether its weights are stored as those of its model are.
    """
    if is_stored_alike and mark.is_kept(model):
        return
    for key in MARK_KEYS:
        remove_entry(model.skeleton, key)
    entries = {SOURCE: mark.source, ROOT: mark.root if mark.root != mark.source else None}
    for key, digest in ((PROMISE, entries[SOURCE]), (ROOT_PROMISE, entries[ROOT])):
        before = mark.promises.get(digest or "")
        entries[key] = None if promise is None or before is None else (before + promise).text
    for key, value in entries.items():
        if value is not None:
            model.skeleton.metadata_props.add(key=key, value=value)


def removes_marks(results: Sequence[PassResult]) -> bool:
    """Return whether a pass of a run was asked to remove marks."""
    return any(each.ran and each.name == "strip" and MARKS in each.text for each in results)


def remove_entry(proto: onnx.ModelProto, key: str) -> None:
    """Remove an entry of the metadata, if there is one."""
    kept = [entry for entry in proto.metadata_props if entry.key != key]
    if len(kept) < len(proto.metadata_props):
        del proto.metadata_props[:]
        proto.metadata_props.extend(kept)


def marked(
    result: OptimizeResult, mark: SourceMark, *, is_stored_alike: bool = True
) -> OptimizeResult:
    """Write the mark into the model of a result, and count its bytes."""
    from tiered.extensions.preparation.promise_mark import carried_by

    skeleton, results = result.model.skeleton, result.report.results
    before = skeleton.ByteSize()
    if not removes_marks(results):
        promise = carried_by(results)
        write_mark(result.model, mark, promise, is_stored_alike=is_stored_alike)
    grown = skeleton.ByteSize() - before
    if not grown:
        return result
    after = result.after
    return result._replace(after=after._replace(nbytes=after.nbytes + grown))


def _joined(digests: list[str]) -> str:
    """Return the digest of several models; that of one is its own."""
    if len(digests) == 1:
        return digests[0]
    return hashlib.sha256(" ".join(digests).encode()).hexdigest()[:32]


def _entry(proto: onnx.ModelProto, key: str) -> str | None:
    return next((entry.value for entry in proto.metadata_props if entry.key == key), None)


def _read(path: str) -> onnx.ModelProto | None:
    """Return the ONNX model of a file without its large weights; None if it holds none."""
    if not os.path.exists(path):
        return None
    import onnx
    from google.protobuf.message import DecodeError

    from tiered.graph.io.protobuf_scan import read_model_bytes

    try:
        proto = onnx.ModelProto.FromString(read_model_bytes(path))
    except DecodeError:
        return None
    return proto if proto.HasField("graph") else None


def _lost(old: onnx.ModelProto, known: Sequence[onnx.ModelProto], asked: Collection[str]) -> str:
    """Return the property that a model has and the others have not; an empty string for none."""
    from tiered.graph.core.node import domain_of

    for entry in () if OPSET in asked else old.opset_import:
        domain = domain_of(entry.domain)
        versions = [
            each.version
            for proto in known
            for each in proto.opset_import
            if domain_of(each.domain) == domain
        ]
        if versions and entry.version > max(versions):
            return f"opset {entry.version}{f' of {domain}' if domain else ''}"
    is_wider = _has_narrow_numbers(old) and not any(map(_has_narrow_numbers, known))
    if is_wider and PRECISION not in asked:
        return "numbers in few bits (it is quantised, or in a narrower type)"
    return ""


def _has_narrow_numbers(proto: onnx.ModelProto) -> bool:
    """Return whether tensors have numbers of fewer than 32 bits."""
    from tiered.graph.core.dtypes import DataType, bits_of
    from tiered.graph.io.save import tensors_of

    kinds = {tensor.data_type for tensor in tensors_of(proto)} - {DataType.BOOL}
    return any(0 < bits_of(kind) < 32 for kind in kinds)


def _digest(path: str, proto: onnx.ModelProto) -> str:
    """Return a digest of the content of a model file, without its mark, and of its weights."""
    import onnx

    from tiered.graph.core.tensor import Tensor
    from tiered.graph.io.save import tensors_of

    bare, folder, spans = onnx.ModelProto(), os.path.dirname(path), []
    bare.CopyFrom(proto)
    for key in MARK_KEYS:
        remove_entry(bare, key)
    for tensor in tensors_of(bare):
        if tensor.data_location == tensor.EXTERNAL:
            spans.append(Tensor(tensor, folder=folder).external_span())
            del tensor.external_data[:]
    digest = hashlib.sha256(bare.SerializeToString(deterministic=True))
    for block in _sampled(spans):
        digest.update(block)
    return digest.hexdigest()[:32]


def _sampled(spans: list[tuple[str, int, int]]) -> Iterator[bytes]:
    """Yield the bytes of parts of files, one after the other; samples of them if they are large."""
    size = sum(length for _, _, length in spans)
    yield f"{size}:".encode()
    wanted = [(0, size)]
    if size > _WHOLE:
        last = size - _SAMPLE
        wanted = [(at * last // (_SAMPLES - 1), _SAMPLE) for at in range(_SAMPLES)]
    waiting = iter(wanted)
    begin, length = next(waiting, (size, 0))
    start = 0
    for path, offset, nbytes in spans:
        with open(path, "rb", buffering=0) as file:
            while length and begin < start + nbytes:
                taken = min(length, start + nbytes - begin)
                file.seek(offset + begin - start)
                yield file.read(taken)
                begin, length = begin + taken, length - taken
                if not length:
                    begin, length = next(waiting, (size, 0))
        start += nbytes
