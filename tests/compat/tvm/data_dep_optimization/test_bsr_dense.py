"""`bsr_dense.convert`: sparse weights of products are stored so."""

from typing import Any

import pytest

from tests.small import parsed
from tiered import Model
from tiered.compat.tvm.data_dep_optimization.bsr_dense import convert
from tiered.support.errors import UsageError

FEW = ",".join(["1", *["0"] * 62, "1"])
TEXT = f"""(float[1,8] x) => (float[1,8] y) <float[8,8] w = {{{FEW}}}, float[8,8] v = {{{FEW}}}> {{
    a = MatMul(x, w)  y = MatMul(a, v) }}"""


def test_sparse_weights_are_stored_so_unless_a_function_or_the_threshold_says_no() -> None:
    seen: list[Model] = []

    def sparse(*given: Any) -> list[str]:
        model = parsed(TEXT)
        made, params = convert(model, *given)
        assert made is model
        assert params is given[0]
        seen.append(model)
        weights = {value.name: value.default for value in model.main.initializers}
        return [name for name, tensor in weights.items() if tensor and tensor.is_sparse]

    both = ["w", "v"]
    assert sparse(None, (1, 2), 0.5) == both
    assert sparse(None, (1, 2), 0.5, bool) == both
    assert sparse(None, (1, 2), 0.5, lambda func: False) == []
    assert sparse(None, (1, 2), 0.97) == []
    assert sparse({"v": 0}, (1, 2), 0.5, lambda func: func not in seen) == ["v"]
    assert not seen[3].changed_since(seen[3].mark())
    with pytest.raises(UsageError, match="the model has no weight 'u'"):
        convert(parsed(TEXT), {"u": 0}, (1, 2), 0.5)
