"""Dump: numbered models in a folder."""

import os
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.small import failing, fuse_relu, look, model, named, ops
from tiered import PassContext, Sequential
from tiered.graph.core.tensor import Tensor
from tiered.pipeline.instruments import Dump
from tiered.support.errors import ModelError


def test_the_input_and_each_pass_that_changed_it_are_written(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "dump"
    dump = Dump(folder)
    with PassContext(instruments=[dump]):
        Sequential([look, fuse_relu])(model())
    assert sorted(os.listdir(folder)) == ["000-input.onnx", "001-fuse_relu.onnx"]
    assert dump.files == [str(folder / name) for name in sorted(os.listdir(folder))]
    assert [len(ops(onnx.load(file))) for file in dump.files] == [4, 3]


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        (True, "dumped 1 model into DIR (with all weights)"),
        (False, "dumped 1 model into DIR (weights of more than 1,024 elements left out, as graph"
                " inputs)"),
    ],
)  # fmt: skip
def test_large_weights_are_there_on_demand(weights: bool, said: str, tmp_path: Path) -> None:
    given = model("g (float[1025] x) => (float[1025] y) <float w = {1}> { y = Add(x, w) }")
    given.main.set_constant(named(given, "w"), Tensor.of(np.zeros(1025, np.float32)))
    dump = Dump(tmp_path, weights=weights)
    with PassContext(instruments=[dump]):
        look(given)
    graph = onnx.load(dump.files[0]).graph
    assert ([each.name for each in graph.initializer] == ["w"]) is weights
    assert str(dump).replace(str(tmp_path), "DIR") == said


def test_every_pass_and_the_text_on_demand(tmp_path: Path) -> None:
    with PassContext(instruments=[Dump(tmp_path, every=True, text=True)]):
        look(model())
    assert sorted(os.listdir(tmp_path)) == [
        "000-input.onnx",
        "000-input.onnx.txt",
        "001-look.onnx",
        "001-look.onnx.txt",
    ]
    assert "Relu (x)" in (tmp_path / "000-input.onnx.txt").read_text()


def test_a_pass_that_fails_is_not_written(tmp_path: Path) -> None:
    with PassContext(on_error="skip", instruments=[Dump(tmp_path)]):
        Sequential([failing(ValueError()), fuse_relu])(model())
    assert sorted(os.listdir(tmp_path)) == ["000-input.onnx", "001-fuse_relu.onnx"]


def test_a_folder_that_cannot_be_made_stops_before_any_pass(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(ModelError, match="cannot make the folder"),
        PassContext(instruments=[Dump(tmp_path / "file")]),
    ):
        pytest.fail("the body does not run")
