"""The certificate: plain data that says what was proved of each rewrite, and by what."""

import hashlib
import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tiered import Model, __version__
from tiered.certify.certificate import COLLISION, certificate, shown, write_certificate
from tiered.certify.checker import Checker
from tiered.certify.problem import Problem
from tiered.certify.regions.region_text import digest_of, packed
from tiered.certify.regions.whole import whole_problem
from tiered.certify.rewrite_records import Certified, Findings
from tiered.support.errors import ModelError
from tiered.testing import parse

HEAD = "(float[N] x, float[N] z) => (float[N] y)"


def problem(number: int = 3, name: str = "x") -> Problem:
    texts = (f"{HEAD} <float k = {{{number}}}> {{ a = Add(x, z)  y = Mul(a, k) }}",
             f"{HEAD} <float k = {{{number}}}> {{ a = Add(z, x)  y = Mul(a, k) }}")  # fmt: skip
    models = [Model.from_proto(parse(each.replace("x", name))) for each in texts]
    return whole_problem(*models)


def certified(number: int = 1, **held: Any) -> Certified:
    given: dict[str, Any] = {"word": "unproved", **held}
    return Certified(number, "fuse_gelu", "a law", "node_y", 3, **given)


def found(*rewrites: Certified) -> dict[str, Any]:
    return certificate(Findings([*rewrites]), parse(f"{HEAD} {{ y = Add(x, z) }}"), None)


def test_a_certificate_of_nothing() -> None:
    assert found() == {
        "format": 1, "tiered": __version__, "before": None, "after": None, "counts": {},
        "collision": COLLISION,
        "axioms": {}, "runtime_axioms": [], "constants": {}, "rewrites": [],
    }  # fmt: skip


def test_a_rewrite_without_a_proof() -> None:
    made = found(certified(word="interface", reason="the reason"))
    assert made["counts"] == {"interface": 1}
    assert made["rewrites"] == [
        {
            "number": 1, "pass": "fuse_gelu", "level": 3, "law": "a law", "node": "node_y",
            "proved": "interface", "sizes": [], "all_sizes": False, "axioms": [], "bound": 0.0,
            "reason": "the reason", "inputs": {}, "region": None,
        }
    ]  # fmt: skip


def test_a_rewrite_with_its_proof_and_its_region() -> None:
    given = problem()
    proof = Checker().prove(given)
    made = found(certified(word="bits", proof=proof, problem=given))
    (rewrite,) = made["rewrites"]
    assert rewrite["proved"] == "bits"
    assert (
        rewrite["axioms"]
        == sorted(proof.axioms)
        == ["add-commutes", "mul-commutes", "sign-of-product"]
    )
    assert list(made["axioms"]) == rewrite["axioms"]
    assert made["axioms"]["add-commutes"] == "x + y and y + x are the same bits"
    assert made["runtime_axioms"] == []
    assert rewrite["sizes"] == [dict(sizes) for sizes in proof.sizes]
    assert rewrite["all_sizes"] is proof.is_for_all
    region = rewrite["region"]
    assert region["borders"] == {"x": "float[N]", "z": "float[N]"}
    assert region["outputs"] == ["y"]
    assert "Add (x, z)" in region["before"]
    assert "Add (z, x)" in region["after"]
    (tensor,) = given.sides[0].constants.values()
    assert region["constants"] == [{"k": digest_of(tensor)}] * 2
    assert made["constants"] == {digest_of(tensor): packed(tensor)}
    json.dumps(made, allow_nan=False)


def test_equal_regions_are_written_once_if_their_names_are_equal_too() -> None:
    given = ((1, problem()), (2, problem()), (3, problem(4)), (4, problem(name="w")))
    rewrites = [certified(number, problem=each) for number, each in given]
    regions = [each["region"] for each in found(*rewrites)["rewrites"]]
    assert regions[1] == "#1"
    assert all(isinstance(each, dict) for each in (regions[0], regions[2], regions[3]))


def test_the_number_of_edits_beside_rewrites_names_no_region() -> None:
    given = ((0, problem()), (0, problem()), (2, problem()), (3, problem()))
    rewrites = [certified(number, problem=each) for number, each in given]
    regions = [each["region"] for each in found(*rewrites)["rewrites"]]
    assert [each if isinstance(each, str) else "own" for each in regions] == [
        *("own", "own", "own", "#2")
    ]


@pytest.mark.parametrize(("size", "is_kept"), [(256, True), (257, False)])
def test_constants_of_up_to_1024_bytes_are_kept(size: int, is_kept: bool) -> None:
    numbers = ",".join("1" for _ in range(size))
    text = f"(float[N,{size}] x) => (float[N,{size}] y) <float[{size}] k = {{{numbers}}}>"
    models = [Model.from_proto(parse(f"{text} {{ {node} }}"))
              for node in ("y = Mul(x, k)", "y = Mul(k, x)")]  # fmt: skip
    made = found(certified(problem=whole_problem(*models)))
    assert bool(made["constants"]) == is_kept


# --- numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("array", "dtype", "values"),
    [
        (np.array([[1.5, -2]], np.float32), "float32", [[1.5, -2.0]]),
        (
            np.array([np.nan, np.inf, -np.inf, 1], np.float32),
            "float32",
            ["nan", "inf", "-inf", "1.0"],
        ),
        (np.array([np.nan, 1], ml_dtypes.bfloat16), "bfloat16", ["nan", "1.0"]),
        (np.array([0.5, 1], ml_dtypes.bfloat16), "bfloat16", [0.5, 1.0]),
        (np.array([np.inf], ml_dtypes.float8_e5m2), "float8_e5m2", ["inf"]),
        (np.array([1, -2], ml_dtypes.int4), "int4", [1, -2]),
        (np.array(7), "int64", 7),
        (np.array([True]), "bool", [True]),
        (np.array([1 + 2j], np.complex64), "complex64", [[1.0, 2.0]]),
        (np.array([complex(np.nan, 2)], np.complex64), "complex64", [["nan", "2.0"]]),
        (np.array(["a", "b"], object), "object", ["a", "b"]),
        (np.zeros((0, 2), np.float32), "float32", []),
    ],
)
def test_numbers_are_shown_as_json_has_them(array: Any, dtype: str, values: Any) -> None:
    made = shown(array)
    assert made == {"dtype": dtype, "shape": [*array.shape], "values": values}
    json.dumps(made, allow_nan=False)


def test_many_numbers_are_not_shown() -> None:
    assert len(shown(np.zeros(1024))["values"]) == 1024
    assert shown(np.zeros(1025)) == {"dtype": "float64", "shape": [1025], "values": None}


# --- files ----------------------------------------------------------------------------------------


def test_the_models_are_named_by_file_and_digest(tmp_path: Path) -> None:
    before, after = tmp_path / "in.onnx", tmp_path / "out.onnx"
    before.write_bytes(b"in")
    after.write_bytes(b"out")
    made = certificate(Findings(), before, str(after))
    assert made["before"] == {"file": "in.onnx", "sha256": hashlib.sha256(b"in").hexdigest()}
    assert made["after"] == {"file": "out.onnx", "sha256": hashlib.sha256(b"out").hexdigest()}
    with pytest.raises(ModelError, match="for the certificate: "):
        certificate(Findings(), tmp_path / "gone.onnx", None)


def test_inputs_that_refute_are_in_a_file_beside(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    inputs = {"x": np.array([1, 2], np.float32), "t": np.array(["a", "bc"], object)}
    findings = Findings([certified(12, word="refuted", inputs=inputs), certified(13)])
    write_certificate(str(path), findings, parse(f"{HEAD} {{ y = Add(x, z) }}"), None)
    text = path.read_text()
    assert text.endswith("}\n")
    (first, _) = json.loads(text)["rewrites"]
    assert first["inputs"]["x"] == {"dtype": "float32", "shape": [2], "values": [1.0, 2.0]}
    with np.load(tmp_path / "c.npz") as arrays:
        assert set(arrays) == {"12/x", "12/t"}
        assert arrays["12/x"].tolist() == [1, 2]
        assert arrays["12/t"].tolist() == ["a", "bc"]


def test_without_inputs_there_is_no_file_beside(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    write_certificate(str(path), Findings(), parse(f"{HEAD} {{ y = Add(x, z) }}"), None)
    assert [each.name for each in tmp_path.iterdir()] == ["c.json"]
    with pytest.raises(ModelError):
        write_certificate(str(tmp_path / "gone" / "c.json"), Findings(), path, None)
