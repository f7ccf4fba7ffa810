"""The least number whose step reaches a bound: it does, and the number before it does not."""

import numpy as np
import pytest

from tiered.function_passes.streamline._monotone import OPERATIONS, least_reaching


@pytest.mark.parametrize("op_type", OPERATIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_number_before_the_least_does_not_reach_the_bound(
    op_type: str, dtype: type[np.floating]
) -> None:
    most = float(np.finfo(dtype).max)
    constants = np.array([1e-30, 1e-3, 0.1, 1 / 3, 1, 3, 1e10, most / 4], dtype)
    if op_type in ("Add", "Sub"):
        constants = np.concatenate([constants, -constants])
    bounds = np.array(
        [0.0, -0.0, 1e-40, -1e-40, 0.1, -0.3, 7, 1e30, -1e30, np.inf, -np.inf, most, -most, np.nan],
        dtype,
    )
    least = least_reaching(op_type, constants[:, None], bounds)
    assert least.dtype == dtype
    with np.errstate(all="ignore"):
        step = OPERATIONS[op_type]
        before = np.nextafter(least, np.array(-np.inf, dtype))
        reaches = step(least, constants[:, None]) >= bounds
        too_low = step(before, constants[:, None]) >= bounds
        never = ~(step(np.array(np.inf, dtype), constants[:, None]) >= bounds)
    assert (reaches | never).all()
    assert (np.isnan(least) == never).all()
    assert not too_low[least > -np.inf].any()
