"""A slice of `tests.conformance.compat_passes`: passes of the compat modules on random models."""

from functools import cache

import pytest

from tests.conformance.compat_passes import Entry, all_passes, faults_of
from tests.conformance.fuzz_passes import NotRunnable

STEP = 60


@cache
def passes() -> list[Entry]:
    return list(all_passes())


@pytest.mark.parametrize("seed", range(6))
def test_results_are_valid_and_have_the_same_outputs(seed: int) -> None:
    try:
        assert list(faults_of(seed, passes()[seed * 9 :: STEP])) == []
    except NotRunnable as error:
        pytest.skip(str(error))


SMALL = ("executorch.", "onnx_passes.", "onnxoptimizer.", "ppq.relinked")


@pytest.mark.parametrize("seed", range(4))
def test_functions_of_other_systems_keep_outputs(seed: int) -> None:
    few = [entry for entry in passes() if entry[0].startswith(SMALL)]
    try:
        assert list(faults_of(seed, few)) == []
    except NotRunnable as error:
        pytest.skip(str(error))


def test_every_compat_module_has_passes() -> None:
    assert {name.partition(".")[0] for name, _, _ in passes()} == {
        *("executorch", "onnx_passes", "onnxoptimizer", "onnxsim", "onnxslim", "poprt", "ppq"),
        "tvm",
    }
