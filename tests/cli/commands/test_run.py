import json
from pathlib import Path

import numpy as np

from tests.cli.conftest import Cli


def test_the_outputs_are_described(cli: Cli, small: Path) -> None:
    np.save(small.with_name("x.npy"), np.array([[0, -2]], np.float32))
    ended = cli("run", small, "--inputs", small.with_name("x.npy"), "--json")
    (row,) = json.loads(ended.out)["values"]
    assert (row["name"], row["op"], row["shape"]) == ("y", "Identity", [1, 2])
    assert (row["min"], row["max"], row["zeros"], row["file"]) == (0, 1, 1, None)
    ended = cli("run", small)
    assert ended.code == 0
    assert "Outputs\n" in ended.out


def test_all_values_are_written(cli: Cli, small: Path) -> None:
    folder = small.with_name("values")
    ended = cli("run", small, "--all-values", "--out", folder)
    assert (ended.code, ended.err) == (0, "")
    assert "3 values\n" in ended.out
    rows = json.loads((folder / "values.json").read_text())["values"]
    assert [row["name"] for row in rows] == ["a", "b", "y"]
    arrays = [np.load(folder / row["file"]) for row in rows]
    np.testing.assert_array_equal(arrays[1], arrays[0] + np.array([1, 2], np.float32))


def test_wrong_inputs_and_files_are_errors(cli: Cli, small: Path) -> None:
    np.savez(small.with_name("feeds.npz"), z=np.zeros(1))
    assert cli("run", small, "--inputs", small.with_name("feeds.npz")).code == 2
    assert cli("run", small.with_name("none.onnx")).code == 1
    assert cli("run", small, "--out", small).code == 1
