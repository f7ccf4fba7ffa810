"""Mutated models through load, inspect and optimize at O3: `make fuzz`.

Each model is a random valid one with some fields changed, bytes flipped or ends cut off. It must
be optimised, or refused by an error that says so; anything else (a bug, a crash, a hang) is kept.
"""

import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cyclopts
import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from tests.conformance.random_graphs import random_model
from tiered import Model, TieredError, optimize
from tiered.cli.facts import gather_facts

SECONDS = 30.0
"""The longest that one model may take."""

_BUG = 5
_NUMBERS = (0, 1, -1, 2, 7, 999, 2**31 - 1, -(2**31), 2**62, -(2**63))
_TEXTS = ("", "x0", "v1", "Relu", "Loop", "local", "\0", "a" * 300, "é", "../x")


def mutated(source: random.Random) -> bytes:
    """Return the bytes of a random model that somebody spoiled."""
    model = random_model(source, source.randint(1, 12))
    for _ in range(source.randint(1, 4)):
        _spoil(model, source)
    content = bytearray(model.SerializeToString())
    kind = source.random()
    if kind < 0.1 and content:
        del content[source.randrange(len(content)) :]
    elif kind < 0.25:
        for _ in range(source.randint(1, 8)):
            content[source.randrange(len(content))] = source.randrange(256)
    return bytes(content)


def _spoil(model: onnx.ModelProto, source: random.Random) -> None:
    """Change one field of one message."""
    message = source.choice([*_messages(model)])
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
    """Return what went wrong with a model that should be optimised, or refused; "" if nothing."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.onnx"
        path.write_bytes(content)
        try:
            gather_facts(Model.load(path), str(path))
            optimize(path, Path(folder) / "out.onnx", opt_level=3)
        except TieredError as error:
            return f"{type(error).__name__}: {error}" if error.exit_code == _BUG else ""
        except Exception as error:  # noqa: BLE001 - this is what is looked for
            return f"{type(error).__name__}: {error}"
    return ""


def _judge(first: int, count: int, folder: Path) -> None:
    """Judge models in this process, and say which is at hand, as it may be the last one."""
    for seed in range(first, first + count):
        content = mutated(random.Random(seed))
        print(f"at {seed}", flush=True)
        fault = fault_of(content)
        if fault:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{seed}.onnx").write_bytes(content)
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
        _judge(seed, batch, folder)
        return
    ends, counts = time.monotonic() + 60 * minutes, Counter[str]()
    while time.monotonic() < ends:
        command = [sys.executable, "-m", "tests.conformance.fuzz_models", "--child"]
        command += ["--seed", str(seed), "--batch", str(batch), "--folder", str(folder)]
        try:
            ended = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=SECONDS + batch
            )
            said, how = ended.stdout, f"ended with {ended.returncode}" if ended.returncode else ""
        except subprocess.TimeoutExpired as error:
            said, how = (error.stdout or b"").decode(), "hangs"
        faults = [line for line in said.splitlines() if line.startswith("fault")]
        reached = [int(line.split()[1]) for line in said.splitlines() if line.startswith("at")]
        last = max(reached, default=seed)
        if how:
            faults.append(f"fault {last}: {how}")
        counts.update(models=last - seed + 1, faults=len(faults))
        print("\n".join(faults), end="\n" if faults else "", flush=True)
        seed = last + 1
    print(f"up to seed {seed}: {dict(counts)}")
    sys.exit(bool(counts["faults"]))


if __name__ == "__main__":
    cyclopts.run(main)
