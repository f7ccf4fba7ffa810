"""Large models are converted one tensor at a time, and large tensors a part at a time.

`make test-long` runs those of more than 2 GB.
"""

import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tiered import DataType, Model, get_pass
from tiered.graph import Tensor
from tiered.numerics.precision import narrowing
from tiered.numerics.precision.few_bits import stored
from tiered.testing import parse

ROWS, LAYERS = 4096, 36
TENSOR = 4 * ROWS * ROWS
ABOVE = 200_000_000
"""Bytes that a process may take beside the largest tensor."""

CONVERT = """
import sys, threading, time
from tiered import Model, get_pass

def own():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("RssAnon"))

def watch():
    while True:
        peaks[0] = max(peaks[0], own())
        time.sleep(0.01)

peaks = [own()]
threading.Thread(target=watch, daemon=True).start()
model = Model.load(sys.argv[1])
get_pass(sys.argv[3]).apply(model)
model.save(sys.argv[2])
print(peaks[0])
"""


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A chain of products whose weights, all zeros, are in a file that takes no room."""
    text = " ".join(f"h{at + 1} = MatMul(h{at}, w{at})" for at in range(LAYERS))
    text = text.replace("h0,", "x,").replace(f"h{LAYERS} =", "y =")
    proto = parse(f"(float[N,{ROWS}] x) => (float[N,{ROWS}] y) {{ {text} }}")
    for at in range(LAYERS):
        tensor = proto.graph.initializer.add(name=f"w{at}", data_type=1, dims=[ROWS, ROWS])
        tensor.data_location = onnx.TensorProto.EXTERNAL
        places = {"location": "w.bin", "offset": str(at * TENSOR), "length": str(TENSOR)}
        for key, value in places.items():
            tensor.external_data.add(key=key, value=value)
    (tmp_path / "w.bin").touch()
    os.truncate(tmp_path / "w.bin", LAYERS * TENSOR)
    onnx.save(proto, tmp_path / "large.onnx")
    return tmp_path / "large.onnx"


@pytest.mark.skipif("TIERED_LONG" not in os.environ, reason="it writes a gigabyte")
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
@pytest.mark.parametrize("name", ["float_to_half", "weights_to_int8", "weights_to_int4"])
def test_a_model_of_more_than_2_gb_needs_little_memory(large: Path, name: str) -> None:
    assert LAYERS * TENSOR > 1 << 31
    out = large.with_name("out.onnx")
    command = [sys.executable, "-c", CONVERT, str(large), str(out), name]
    ended = subprocess.run(command, check=True, capture_output=True, text=True)
    assert int(ended.stdout) <= TENSOR + ABOVE
    made = onnx.load(out, load_external_data=False)
    weights = [each for each in made.graph.initializer if list(each.dims) == [ROWS, ROWS]]
    assert len(weights) == LAYERS
    narrow = {onnx.TensorProto.FLOAT16, onnx.TensorProto.INT8, onnx.TensorProto.UINT4}
    assert {each.data_type for each in weights} <= narrow


# --- a part at a time -----------------------------------------------------------------------------


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts are small, and no result stays in memory."""
    monkeypatch.setattr(narrowing, "_AT_ONCE", 1 << 12)
    monkeypatch.setattr(stored, "_AT_ONCE", 1 << 12)
    monkeypatch.setattr("tiered.graph.core.lazy_bytes._BLOCK", 1 << 12)
    monkeypatch.setattr("tiered.graph.core.tensor.SPILLED", 1 << 12)


def peak_of(run: Callable[[], object]) -> int:
    """Return the most bytes that Python and numpy take in a call."""
    tracemalloc.start()
    run()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


@pytest.mark.usefixtures("parts")
def test_parts_of_a_weight_are_rounded_as_the_whole() -> None:
    numbers = np.linspace(-70_000, 1_000, 3 << 12, dtype=np.float32).reshape(3, 2, -1)
    found, is_clamped = narrowing.narrow(numbers, DataType.FLOAT16)
    expected = np.maximum(numbers, -65_504).astype(np.float16)
    assert (found.tobytes(), found.shape, is_clamped) == (expected.tobytes(), numbers.shape, True)
    assert not narrowing.narrow(numbers[1:], DataType.FLOAT16)[1]


def weighty(file: Path, columns: int) -> Model:
    """Return a chain of three products whose weights are in a file, which is mapped."""
    text = "h1 = MatMul(x, w0) h2 = MatMul(h1, w1) y = MatMul(h2, w2)"
    weights = ", ".join(f"float[{columns},{columns}] w{at} = {{0}}" for at in range(3))
    model = parse(f"(float[N,{columns}] x) => (float[N,{columns}] y) <{weights}> {{ {text} }}")
    model.opset_import[0].version = 21
    for at, tensor in enumerate(model.graph.initializer):
        numbers = np.random.default_rng(at).standard_normal((columns, columns))
        tensor.CopyFrom(onnx.numpy_helper.from_array(numbers.astype(np.float32), tensor.name))
    onnx.save(model, file, save_as_external_data=True, location=f"{file.name}.bin")
    return Model.load(file)


@pytest.mark.usefixtures("parts")
@pytest.mark.parametrize(
    ("name", "share", "options"),
    [
        ("float_to_half", 0.5, {}),
        ("weights_to_int8", 0.25, {}),
        ("weights_to_int4", 0.4, {"rounding": "nearest", "sensitive": "int4"}),
    ],
)
def test_a_conversion_holds_one_result_at_a_time(
    tmp_path: Path, name: str, share: float, options: dict[str, Any]
) -> None:
    convert = get_pass(name, **options)
    convert.apply(weighty(tmp_path / "small.onnx", 64))  # loads the code
    model = weighty(tmp_path / "large.onnx", 768)
    peak = peak_of(lambda: convert.apply(model))
    assert peak < (share + 0.1) * 4 * 768 * 768


@pytest.mark.usefixtures("parts")
def test_four_bits_are_packed_a_part_at_a_time() -> None:
    numbers = (np.arange(1 << 20) % 16).astype(np.uint8).astype(DataType.UINT4.numpy)
    peak = peak_of(lambda: Tensor.of(numbers))
    assert peak < numbers.nbytes / 10
