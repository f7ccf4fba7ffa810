"""The model of a pipeline against the loaded one, or against another file."""

from pathlib import Path

import pytest

from tiered import Model
from tiered.extensions.debug.as_loaded import compare_with_loaded, layers_against_loaded
from tiered.support.errors import VerificationError
from tiered.testing import parse

TEXT = """(float[4] x) => (float[4] y) <float[4] w = {{1,2,3,{last}}}> {{
    a = Add(x, w)  y = Abs(a) }}"""


def test_a_model_is_compared_with_the_loaded_one_or_with_a_file(tmp_path: Path) -> None:
    model, other = Model.from_proto(parse(TEXT.format(last=4))), tmp_path / "other.onnx"
    Model.from_proto(parse(TEXT.format(last=9))).save(other)
    assert compare_with_loaded(model).ok
    assert all(layer.ok for layer in layers_against_loaded(model).layers)
    assert len(layers_against_loaded(model, original=str(other)).layers) == 2
    for accepted, said in (((0.0, 10.0), ""), ((0.0, 1.0), "max_abs_error"), ((9.0, 10.0), "max")):
        metric, file = "max_abs_error", str(other)
        if said:
            with pytest.raises(VerificationError, match=said):
                compare_with_loaded(model, original=file, metric=metric, accepted=accepted)
        else:
            assert compare_with_loaded(model, original=file, metric=metric, accepted=accepted).ok
