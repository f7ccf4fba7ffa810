"""Frames: every value that a model takes crosses unchanged, and nothing that is read is run."""

import io
import json
import struct
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tiered.runtime.worker.frames import Blob, pack, receive, send, unpack
from tiered.support.errors import RuntimeFailure


def there(value: Any) -> Any:
    """Return a value after it was sent and received."""
    blobs: list[Blob] = []
    body = pack(value, blobs)
    stream = io.BytesIO()
    send(stream, body, blobs)
    stream.seek(0)
    return unpack(*receive(stream))


def are_same(one: Any, other: Any) -> bool:
    return (one.dtype, one.shape) == (other.dtype, other.shape) and one.tobytes() == other.tobytes()


@pytest.mark.parametrize(
    "array",
    [
        np.array([[1.5, -0.0, np.nan], [np.inf, -np.inf, 1e-45]], np.float32),
        np.array([1, 2], np.float16),
        np.array(3.0), np.zeros((0, 3), np.float32), np.zeros((2, 0), np.int8),
        np.array([True, False]), np.array([2**64 - 1], np.uint64), np.array([-(2**63)], np.int64),
        np.array([1 + 2j], np.complex64), np.array([1, 2], ml_dtypes.bfloat16),
        np.array([1, -2], ml_dtypes.int4), np.array([0.5], ml_dtypes.float8_e4m3fn),
        np.arange(6).reshape(2, 3).T, np.arange(10)[::3],
    ],
    ids=lambda array: f"{array.dtype.name}{array.shape}",
)  # fmt: skip
def test_arrays_arrive_bit_for_bit(array: Any) -> None:
    found = there(array)
    assert are_same(found, array)
    assert found.flags.writeable


def test_the_bits_of_a_nan_are_kept() -> None:
    bits = np.array([0xFFC00001, 0x7F800001], np.uint32).view(np.float32)
    assert there(bits).view(np.uint32).tolist() == bits.view(np.uint32).tolist()


def test_numbers_in_another_byte_order_arrive_as_numbers() -> None:
    found = there(np.array([1, 2], ">i4"))
    assert (found.dtype, found.tolist()) == (np.dtype(np.int32), [1, 2])


def test_a_number_of_numpy_is_an_array() -> None:
    found = there(np.float32(1.5))
    assert are_same(found, np.asarray(1.5, np.float32))


@pytest.mark.parametrize(
    "array",
    [
        np.array([["a", ""], ["ünï", "\ud800"]], object), np.array(["ab", "c"]),
        np.array([b"ab", "ü".encode()]), np.empty((0, 2), object), np.array("x", object),
    ],
    ids=str,
)  # fmt: skip
def test_strings_arrive_as_objects(array: Any) -> None:
    found = there(array)
    expected = np.char.decode(array, "utf-8") if array.dtype.kind == "S" else array
    assert (found.dtype, found.shape) == (np.dtype(object), array.shape)
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize(
    "value",
    [None, True, False, 0, -(2**70), 1.5, float("inf"), "", "text", [], {}, [None, [1, "a"]]],
)
def test_plain_values_arrive_as_they_are(value: Any) -> None:
    found = there(value)
    assert found == value
    assert type(found) is type(value)


def test_sequences_and_maps_hold_arrays() -> None:
    x, y = np.array([1, 2], np.float32), np.array([[3]], np.int64)
    found = there([x, (y, None)])
    assert are_same(found[0], x)
    assert are_same(found[1][0], y)
    assert found[1][1] is None
    held = there({np.int64(1): x, 2: 0.5})
    assert list(held) == [1, 2]
    assert are_same(held[1], x)
    assert held[2] == 0.5
    assert there({np.str_("a"): 1, 1.5: 2}) == {"a": 1, 1.5: 2}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (object(), "no model takes a object"),
        ({1, 2}, "no model takes a set"),
        ([b"bytes"], "no model takes a bytes"),
        ({None: 1}, "no model takes a map with a key of type NoneType"),
        ({(1, 2): 1}, "no model takes a map with a key of type tuple"),
        (np.array([1, "a"], object), "an array of objects must hold texts"),
    ],
)
def test_what_no_model_takes_is_refused(value: Any, message: str) -> None:
    with pytest.raises(RuntimeFailure) as refused:
        pack(value, [])
    assert str(refused.value) == message


def test_an_unknown_tag_is_a_fault_of_the_code() -> None:
    with pytest.raises(AssertionError, match="unknown frame tag"):
        unpack({"z": 1}, [])


def test_a_frame_is_its_length_a_json_and_its_blobs() -> None:
    stream = io.BytesIO()
    send(stream, {"do": "run"}, [b"ab", b"", bytearray(b"cde")])
    text = json.dumps([{"do": "run"}, [2, 0, 3]]).encode()
    assert stream.getvalue() == struct.pack("<Q", len(text)) + text + b"abcde"
    stream.seek(0)
    body, blobs = receive(stream)
    assert (body, [*map(bytes, blobs)]) == ({"do": "run"}, [b"ab", b"", b"cde"])


def test_frames_follow_each_other() -> None:
    stream = io.BytesIO()
    for number in range(3):
        send(stream, number, [bytes([number])])
    stream.seek(0)
    assert [receive(stream) for _ in range(3)] == [(n, [bytearray([n])]) for n in range(3)]


class Slow(io.BytesIO):
    """A pipe that returns a byte at a time."""

    def readinto(self, buffer: Any) -> int:
        return super().readinto(buffer[:1])


def test_a_frame_may_arrive_byte_by_byte() -> None:
    stream = io.BytesIO()
    send(stream, "text", [b"abc"])
    assert receive(Slow(stream.getvalue())) == ("text", [bytearray(b"abc")])


@pytest.mark.parametrize("length", [0, 3, 8, 20, -1])
def test_the_end_of_the_stream_inside_a_frame_is_the_end(length: int) -> None:
    stream = io.BytesIO()
    send(stream, "text", [b"abc"])
    with pytest.raises(EOFError):
        receive(io.BytesIO(stream.getvalue()[:length]))


def test_views_of_arrays_are_sent_without_a_copy() -> None:
    array = np.arange(4, dtype=np.int32)
    blobs: list[Blob] = []
    assert pack([array, array], blobs) == {
        "l": [{"a": ["int32", [4], 0]}, {"a": ["int32", [4], 1]}]
    }
    assert isinstance(blobs[0], memoryview)
    array[0] = 9
    assert bytes(blobs[0]) == array.tobytes()
