"""Mutated models through load, inspect and optimize at O3: `make fuzz`.

Each model is a random valid one with some messages changed, exchanged or repeated, weights put in
a file of their own, bytes flipped or ends cut off. It must be optimised, or refused by an error
that says so; anything else (a bug, a crash, a hang, too much memory) is kept.
"""

import faulthandler
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import cyclopts
import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from tests.conformance.random_graphs import random_model
from tiered import Model, TieredError, optimize
from tiered.cli.facts import gather_facts
from tiered.graph.io import protobuf_scan
from tiered.runtime.worker.limits import MemoryLimit, load_libraries

SECONDS = 60.0
"""The longest that one model may take."""

MEMORY = 2 << 30
"""The most that one process may allocate."""

DATA = "w.bin"
"""The file of external weights, beside the model."""

_BUG = 5
_NUMBERS = (0, 1, -1, 2, 7, 999, 2**31 - 1, -(2**31), 2**62, -(2**63))
_TEXTS = ("", "x0", "v1", "c2", "Relu", "Loop", "local", "axis", "\0", "a" * 300, "é", "../x")
_LOCATIONS = (DATA, DATA, DATA, f"./{DATA}", f"../{DATA}", f"/{DATA}", "", "missing", ".", "\0")


def mutated(source: random.Random) -> bytes:
    """Return the bytes of a random model that somebody spoiled."""
    model = random_model(source, source.randint(1, 12))
    if source.random() < 0.15:
        _put_outside(model, source)
    for _ in range(source.randint(1, 4)):
        source.choice((_spoil, _spoil, _spoil, _exchange, _rename))(model, source)
    content = bytearray(model.SerializeToString())
    kind = source.random()
    if kind < 0.1 and content:
        del content[source.randrange(len(content)) :]
    elif kind < 0.2:
        for _ in range(source.randint(1, 8)):
            content[source.randrange(len(content))] = source.randrange(256)
    return bytes(content)


def _spoil(model: onnx.ModelProto, source: random.Random) -> None:
    """Change one field of one message."""
    message = _any_message(model, source)
    field = source.choice([*message.DESCRIPTOR.fields])
    content: Any = getattr(message, field.name)
    if field.is_repeated:
        action = source.random()
        if len(content) and action < 0.3:
            del content[source.randrange(len(content))]
        elif len(content) and action < 0.6:
            other = content[source.randrange(len(content))]
            (content.add().CopyFrom(other) if isinstance(other, Message) else content.append(other))
        elif field.message_type is not None:
            content.add()
        else:
            content.append(_scalar(field, source))
    elif field.message_type is not None:
        (message.ClearField(field.name) if source.random() < 0.5 else content.SetInParent())
    elif source.random() < 0.3:
        message.ClearField(field.name)
    else:
        setattr(message, field.name, _scalar(field, source))


def _exchange(model: onnx.ModelProto, source: random.Random) -> None:
    """Put in the place of a message another one of its kind: a type, a tensor, a body, a node."""
    target = _any_message(model, source)
    kind = target.DESCRIPTOR.full_name
    alike = [other for other in _messages(model) if other.DESCRIPTOR.full_name == kind]
    chosen = type(target)()
    chosen.CopyFrom(source.choice(alike))
    if chosen.ByteSize() < 1 << 20:  # a body in itself grows by powers
        target.CopyFrom(chosen)


def _rename(model: onnx.ModelProto, source: random.Random) -> None:
    """Let a node read, write or call what another one does."""
    nodes = [m for m in _messages(model) if isinstance(m, onnx.NodeProto)]
    if not nodes:
        return
    node, other = source.choice(nodes), source.choice(nodes)
    action = source.randrange(3)
    if action == 0:
        node.op_type, node.domain = other.op_type, other.domain
        return
    names = node.input if action == 1 else node.output
    others = [*other.input, *other.output, *(value.name for value in model.graph.initializer)]
    if names and others:
        names[source.randrange(len(names))] = source.choice(others)


def _put_outside(model: onnx.ModelProto, source: random.Random) -> None:
    """Say that a tensor is in a file of its own, which may be so."""
    tensors = [m for m in _messages(model) if isinstance(m, onnx.TensorProto)]
    for tensor in source.sample(tensors, min(len(tensors), 2)):
        length = len(onnx.numpy_helper.to_array(tensor).tobytes())
        for field in ("raw_data", "float_data", "int32_data", "int64_data", "double_data"):
            tensor.ClearField(field)
        tensor.data_location = onnx.TensorProto.EXTERNAL
        entries = {
            "location": source.choice(_LOCATIONS),
            "offset": str(source.choice((0, 0, 0, 8, 4096, -1, 1 << 62))),
            "length": str(source.choice((length, length, length, 0, -1, 1 << 62, "x"))),
        }
        for key, value in entries.items():
            tensor.external_data.add(key=key, value=value)


def _any_message(model: onnx.ModelProto, source: random.Random) -> Message:
    """Return a message; a kind that is rare is as likely as one that is frequent."""
    kinds: dict[str, list[Message]] = {}
    for message in _messages(model):
        kinds.setdefault(message.DESCRIPTOR.full_name, []).append(message)
    return source.choice(kinds[source.choice([*kinds])])


def _messages(message: Message) -> Iterator[Message]:
    yield message
    for field, content in message.ListFields():
        if field.message_type is not None:
            for inner in content if field.is_repeated else [content]:
                yield from _messages(inner)


def _scalar(field: FieldDescriptor, source: random.Random) -> Any:
    kind = field.cpp_type
    if kind == FieldDescriptor.CPPTYPE_STRING:
        text = source.choice(_TEXTS)
        return text.encode() if field.type == FieldDescriptor.TYPE_BYTES else text
    if kind in (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE):
        return source.choice((0.0, -0.0, 1.5, float("inf"), float("nan")))
    number = source.choice(_NUMBERS)
    if kind == FieldDescriptor.CPPTYPE_ENUM:
        assert field.enum_type is not None
        return source.choice([value.number for value in field.enum_type.values])
    if kind == FieldDescriptor.CPPTYPE_INT32:
        return max(-(2**31), min(2**31 - 1, number))
    if kind == FieldDescriptor.CPPTYPE_UINT64:
        return abs(number)
    return number


def fault_of(content: bytes) -> str:
    """Return what went wrong with a model that should be optimised, or refused; "" if nothing.

    Half of the models are read as large files are: by a scan that leaves the weights on disk.
    """
    is_scanned = len(content) % 2 == 0
    least = (1, 16) if is_scanned else (protobuf_scan.SCANNED, protobuf_scan._LARGE)
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(protobuf_scan, "SCANNED", least[0]),
        mock.patch.object(protobuf_scan, "_LARGE", least[1]),
    ):
        path, out = Path(folder) / "in" / "m.onnx", Path(folder) / "out.onnx"
        path.parent.mkdir()
        path.write_bytes(content)
        (path.parent / DATA).write_bytes(bytes(range(256)) * 32)
        try:
            gather_facts(Model.load(path), str(path))
            optimize(path, out, opt_level=3)
            return _fault_of_result(path, out)
        except TieredError as error:
            return f"{type(error).__name__}: {error}" if error.exit_code == _BUG else ""
        except Exception as error:  # noqa: BLE001 - this is what is looked for
            return f"{type(error).__name__}: {error}"


def _fault_of_result(path: Path, out: Path) -> str:
    """Return what is wrong with a written model: where the source is valid, so is the result."""
    Model.load(out)
    try:
        onnx.checker.check_model(str(path))
    except Exception:  # noqa: BLE001 - whatever it says of a model that is spoiled
        return ""
    onnx.checker.check_model(str(out))
    return ""


def _judge(first: int, count: int) -> None:
    """Judge models in this process, and say which is at hand, as it may be the last one."""
    load_libraries()
    MemoryLimit().set(MEMORY)
    for seed in range(first, first + count):
        print(f"at {seed}", flush=True)
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        fault = fault_of(mutated(random.Random(seed)))
        faulthandler.cancel_dump_traceback_later()
        if fault:
            print(f"fault {seed}: {' '.join(fault.split())[:300]}", flush=True)


def main(
    *,
    minutes: float = 10.0,
    seed: int = 0,
    folder: Path = Path("build/fuzz-models"),
    batch: int = 100,
    child: bool = False,
) -> None:
    """Judge mutated models, one number after the other, and keep those that show a fault.

    Args:
        minutes: how long.
        seed: the first number.
        folder: where the models go.
        batch: how many one process judges.
        child: judge one batch in this process.
    """
    if child:
        _judge(seed, batch)
        return
    ends, counts = time.monotonic() + 60 * minutes, Counter[str]()
    while time.monotonic() < ends:
        command = [sys.executable, "-m", "tests.conformance.fuzz_models", "--child"]
        command += ["--seed", str(seed), "--batch", str(batch)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = [line.split(maxsplit=2) for line in ended.stdout.splitlines()]
        last = max((int(line[1]) for line in lines if line[0] == "at"), default=seed)
        faults = {int(line[1].rstrip(":")): line[2] for line in lines if line[0] == "fault"}
        if ended.returncode:
            words = " ".join(ended.stderr.split())[-300:]
            faults[last] = f"ended with {ended.returncode}: {words}"
        for number, fault in faults.items():
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{number}.onnx").write_bytes(mutated(random.Random(number)))
            print(f"fault {number}: {fault}", flush=True)
        counts.update(models=last - seed + 1, faults=len(faults))
        seed = last + 1
    print(f"up to seed {seed}: {dict(counts)}")
    sys.exit(bool(counts["faults"]))


if __name__ == "__main__":
    cyclopts.run(main)
