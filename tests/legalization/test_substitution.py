from pathlib import Path

import onnx

from tiered import Model, PassContext, get_backend, pipeline_for
from tiered.testing import parse

PROFILE = """
api_version = 1
name = "own"
doc = "."
shapes = "static"
[dtypes]
activations = ["float"]
[operators]
Relu = true
"own::Select" = { inputs = ["C:B", "X:T", "Y:T"], outputs = ["Z:T"], types = { B = ["bool"] } }
[substitute]
Where = "own::Select"
"""


def test_a_target_of_static_shapes_takes_its_own_operator(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(PROFILE)
    backend = get_backend(str(tmp_path / "own.toml"))
    model = Model.from_proto(
        parse(
            "(bool[2] c, float[2] x, float[2] y) => (float[2] z) { w = Where(c, x, y) z = Relu(w) }"
        )
    )
    with PassContext(opt_level=3, backend=backend, strict=True):
        pipeline_for(backend)(model)
    assert [(node.domain, node.op_type) for node in model.main.topological_order()] == [
        ("own", "Select"),
        ("", "Relu"),
    ]
    assert backend.coverage(model).is_met
    onnx.checker.check_model(model.to_proto(), full_check=True)
