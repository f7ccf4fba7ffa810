import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx

from tests.cli.conftest import Cli
from tiered.testing import parse


def test_all_that_is_printed(transcript: Callable[[str], None]) -> None:
    transcript("run")


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


OUTPUTS = """(float[2] x, float[2] z) =>
    (float[2] y, float[2] x, float[2] w, float[2] v, float[2] z)
    <float[2] w = {1,-0}, float[2] z = {5,7}> { y = Neg(x)  u = Exp(x)  v = Abs(w) }"""


def saved(folder: Path, text: str) -> Path:
    onnx.save(parse(text), path := folder / "m.onnx")
    return path


def test_outputs_that_no_node_computes_are_described_too(cli: Cli, tmp_path: Path) -> None:
    path = saved(tmp_path, OUTPUTS)
    np.save(tmp_path / "x.npy", np.array([3, np.nan], np.float32))
    rows = json.loads(cli("run", path, "--inputs", tmp_path / "x.npy", "--json").out)["values"]
    found = {row["name"]: row for row in rows}
    assert list(found) == ["y", "v", "x", "w", "z"]
    x, w, z = (found[name] for name in "xwz")
    assert (x["node"], x["op"], x["min"], x["max"], x["nans"]) == ("", "", 3, 3, 1)
    assert (w["op"], w["min"], w["max"], w["zeros"]) == ("", 0, 1, 1)
    assert (z["min"], z["max"]) == (5, 7)
    every = json.loads(cli("run", path, "--all", "--json", "-o", tmp_path / "o").out)["values"]
    assert [row["name"] for row in every] == ["y", "u", "v", "x", "w", "z"]
    assert [row["file"] for row in every][::5] == ["00000_y.npy", "00005_z.npy"]
    np.testing.assert_array_equal(np.load(tmp_path / "o" / "00005_z.npy"), [5, 7])


def test_several_sets_of_inputs_are_refused(cli: Cli, small: Path) -> None:
    for number in range(2):
        np.savez(small.with_name(f"{number}.npz"), x=np.zeros((1, 2), np.float32))
    files = [small.with_name(f"{number}.npz") for number in range(2)]
    assert cli("run", small, "--inputs", files[0]).code == 0
    ended = cli("run", small, "--inputs", files[0], "--inputs", files[1])
    assert ended.code == 2
    assert ended.err == "tiered: error: tiered run takes one set of inputs; --inputs has 2\n"


KINDS = """(float[3] x) => (float8e4m3fn[3] h, string[1] s, bool[3] b, seq(float[3]) q) {
    h = Cast<to=17>(x)  s = Constant<value_strings=["a"]>()  n = IsNaN(x)  b = Not(n)
    q = SequenceConstruct(x) }"""


def test_values_of_each_kind_are_written_as_numpy_reads_them(cli: Cli, tmp_path: Path) -> None:
    path = saved(tmp_path, KINDS)
    np.save(tmp_path / "x.npy", np.array([1, np.inf, -0.0], np.float32))
    ended = cli("run", path, "--inputs", tmp_path / "x.npy", "--out", tmp_path / "deep" / "o")
    assert (ended.code, ended.err) == (0, "")
    record = json.loads((tmp_path / "deep" / "o" / "values.json").read_text())
    found = {row["name"]: row for row in record["values"]}
    files = {name: row["file"] for name, row in found.items()}
    assert files == {"h": "00000_h.npy", "s": "00001_s.npy", "b": "00003_b.npy", "q": None}
    arrays = [np.load(tmp_path / "deep" / "o" / files[name]) for name in "hsb"]
    assert [array.dtype.str for array in arrays] == ["|u1", "<U1", "|b1"]
    assert arrays[0].tolist() == [0x38, 0x7E, 0x80]  # 1, 448 as the largest, -0
    h, s, q = found["h"], found["s"], found["q"]
    assert (h["dtype"], h["shape"], h["zeros"]) == ("float8_e4m3fn", [3], 1)
    assert (s["dtype"], s["min"], s["max"], s["zeros"]) == ("string", None, None, 0)
    assert (q["dtype"], q["shape"]) == ("sequence", None)
    assert "q" in ended.out
    assert "sequence " in ended.out


def test_numbers_that_are_not_finite_are_null(cli: Cli, tmp_path: Path) -> None:
    path = saved(tmp_path, "(float[3] x) => (float[3] y) { y = Identity(x) }")
    np.save(tmp_path / "x.npy", np.array([-np.inf, np.nan, np.inf], np.float32))
    (row,) = json.loads(cli("run", path, "--inputs", tmp_path / "x.npy", "--json").out)["values"]
    assert (row["min"], row["max"], row["nans"], row["infs"]) == (None, None, 1, 2)


def test_names_of_files_have_letters_that_all_systems_take(cli: Cli, tmp_path: Path) -> None:
    model = parse("(float[3] x) => (float[3] y) { y = Identity(x) }")
    long = "a/b:c\\d " + "e" * 100
    model.graph.node[0].output[0] = model.graph.output[0].name = long
    onnx.save(model, tmp_path / "m.onnx")
    assert cli("run", tmp_path / "m.onnx", "--out", tmp_path / "o").code == 0
    assert f"00000_a_b_c_d_{'e' * 72}.npy" in [each.name for each in (tmp_path / "o").iterdir()]
