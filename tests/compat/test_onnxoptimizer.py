"""`optimize` with the arguments of onnxoptimizer's."""

import pytest

from tests.compat.test_onnxsim import NORM, TEXT
from tests.small import ops, proto
from tiered.compat import onnxoptimizer
from tiered.support.errors import PassNotFoundError


def test_passes_run_in_their_order_whatever_their_level() -> None:
    names = ["eliminate_identity", "fuse_bn_into_conv"]
    assert set(names) <= set(onnxoptimizer.get_fuse_and_elimination_passes())
    assert "fold_constant" in onnxoptimizer.get_available_passes()
    assert ops(onnxoptimizer.optimize(proto(NORM), names)) == ["Conv"]
    assert ops(onnxoptimizer.optimize(proto(NORM))) == ["Conv"]
    made = onnxoptimizer.optimize(proto(TEXT), ["eliminate_identity"], fixed_point=True)
    assert ops(made) == ["Sqrt", "Add", "Abs"]
    with pytest.raises(PassNotFoundError, match="did you mean 'eliminate_identity'"):
        onnxoptimizer.optimize(proto(TEXT), ["eliminate_identiy"])
    with pytest.raises(ValueError, match=r"takes an onnx\.ModelProto, not str"):
        onnxoptimizer.optimize("model.onnx")  # type: ignore[arg-type]  # what is wrong


def test_a_fixed_point_runs_until_nothing_changes() -> None:
    text = "g (float[2] x) => (float[2] y) { a = Identity(x)  b = Relu(a)  y = Relu(b) }"
    names = ["eliminate_idempotent", "eliminate_identity"]
    assert ops(onnxoptimizer.optimize(proto(text), names, fixed_point=True)) == ["Relu"]
    given = proto(text)
    onnxoptimizer.optimize(given, [])
    assert given == proto(text)


def test_the_names_of_passes_begin_with_what_they_do() -> None:
    names = onnxoptimizer.get_fuse_and_elimination_passes()
    assert "fold_constant" not in names
    assert {name.partition("_")[0] for name in names} == {"eliminate", "fuse"}
    assert set(names) < set(onnxoptimizer.get_available_passes())
