"""Whole models come out as recorded, on any machine: a change of the code says why they differ.

Numbers of floats are left out here, since processors differ in last bits; `make digests` compares
these too.
"""

from pathlib import Path

import onnx
import pytest

from tests.conformance.digests import (
    MODELS,
    differences,
    digests_of,
    model_files,
    recorded,
    structure_of,
)
from tiered.testing import parse


@pytest.mark.parametrize("path", model_files(MODELS), ids=lambda path: path.stem)
def test_inputs_and_results_are_as_recorded(path: Path) -> None:
    found = digests_of(path)
    portable = {name: found[name] for name in found if name == "inputs" or "structure" in name}
    assert differences(recorded(), {path.name: portable}) == [], "`make digests-write`, and say why"


def test_every_recorded_model_is_still_there() -> None:
    assert {path.name for path in model_files(MODELS)} == set(recorded())


def test_a_structure_leaves_out_floats_and_nothing_else() -> None:
    def structure(number: float, size: int, name: str = "y") -> bytes:
        constants = f"<float c = {{{number}}}, int64[1] s = {{{size}}}>"
        text = f"(float[2] x) => (float[2] {name}) {constants}"
        return structure_of(parse(f"{text} {{ t = Add(x, c) {name} = Reshape(t, s) }}"))

    assert structure(1.5, 2) == structure(2.5, 2)
    assert structure(1.5, 2) != structure(1.5, -1)
    assert structure(1.5, 2) != structure(1.5, 2, "z")


def test_the_given_model_keeps_its_numbers() -> None:
    model = parse("(float[2] x) => (float[2] y) <float c = {1.5}> { y = Add(x, c) }")
    before = model.SerializeToString()
    structure_of(model)
    assert model.SerializeToString() == before
    assert isinstance(model, onnx.ModelProto)
