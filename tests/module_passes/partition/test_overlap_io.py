"""overlap_io: inputs and outputs with a mark for transfers."""

import onnx
import pytest

from tiered import ModelError, UsageError, get_pass, optimize
from tiered.testing import assert_unchanged, parse

TEXT = (
    "(float[2] x, float[2] z, float[2] d = {1, 2}) => (float[2] y) { a = Add(x, z) y = Add(a, d) }"
)


def _marks(model: onnx.ModelProto) -> dict[str, str]:
    infos = (*model.graph.input, *model.graph.output)
    return {
        info.name: entry.value
        for info in infos
        for entry in info.metadata_props
        if entry.key == "tiered.overlap_io"
    }


def _model(ir_version: int = 10) -> onnx.ModelProto:
    model = parse(TEXT)
    model.ir_version = ir_version
    return model


def test_inputs_and_outputs_are_marked_but_no_defaults() -> None:
    made = get_pass("overlap_io")(_model())
    assert _marks(made) == {"x": "host_load", "z": "host_load", "y": "host_store"}
    onnx.checker.check_model(made, full_check=True)
    assert get_pass("overlap_io")(made) == made
    assert _marks(optimize(made, opt_level=3)) == _marks(made)


def test_named_tensors_are_marked_and_other_metadata_stays() -> None:
    model = _model()
    model.graph.input[0].metadata_props.add(key="own", value="1")
    made = get_pass("overlap_io", tensors=["x", "d", "y"])(model)
    assert _marks(made) == {"x": "host_load", "d": "host_load", "y": "host_store"}
    assert made.graph.input[0].metadata_props[0].key == "own"


def test_all_are_marked() -> None:
    made = get_pass("overlap_io")(_model())
    assert_unchanged("overlap_io", made, because="all are marked")


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(UsageError, match="no input or output 'a'"):
        get_pass("overlap_io", tensors=["a"])(_model())


def test_an_old_ir_version_has_no_metadata() -> None:
    with pytest.raises(ModelError, match="which need 10"):
        get_pass("overlap_io")(_model(9))
