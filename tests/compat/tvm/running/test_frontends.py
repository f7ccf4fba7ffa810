"""`relay.frontend`: models of ONNX, and what to do with those of other formats."""

from typing import Any

import numpy as np

from tests.recorded import assert_values
from tests.small import proto
from tiered.compat.tvm.running import frontends


def test_frontends_are_recorded() -> None:
    text = "g (float[n,2] x) => (float[n,2] y) <float[2] w = {1,2}> { y = Add(x, w) }"
    given = proto(text)

    def read(*args: Any, **named: Any) -> object:
        made, parameters = frontends.from_onnx(given, *args, **named)
        assert given == proto(text)
        types = [f"{value.name} {value.type}" for value in (*made.main.inputs, *made.main.outputs)]
        return types, {name: np.asarray(each).tolist() for name, each in parameters.items()}

    assert_values(__file__, {"read": read, "frontends": frontends})
