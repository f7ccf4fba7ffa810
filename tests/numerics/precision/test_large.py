"""Models of more than 2 GB are converted one tensor at a time; `make test-long` runs this."""

import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

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
