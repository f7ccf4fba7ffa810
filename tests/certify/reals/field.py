"""Operators over the reals, on unknowns and numbers."""

from typing import Any

import numpy as np

from tests.certify.call import FLOAT, call, free, known, only
from tiered.certify.domains.affine_elements import Affine
from tiered.certify.domains.element_arrays import AFFINE
from tiered.certify.evaluation.values import CheckedTensor
from tiered.certify.reals.real_meanings import REALS

DOMAIN = Affine(2.0**-23)


def unknown(name: str, *shape: int, dtype: int = FLOAT) -> CheckedTensor:
    """Return unknowns."""
    return free(name, *shape, dtype=dtype, domain=DOMAIN)


def number(value: Any, kind: Any = np.float32) -> CheckedTensor:
    """Return a constant."""
    return known(value, kind, DOMAIN)


def ran(op: str, *inputs: CheckedTensor | None, **held: Any) -> CheckedTensor:
    """Return the one result of an operator."""
    return only(REALS[op](call(op, *inputs, domain=DOMAIN, **held)))


def are_same(one: CheckedTensor, other: CheckedTensor) -> bool:
    """Return whether elements are equal; numbers up to what rounds in the last place."""
    a, b = one.terms, other.terms
    assert a.dtype == b.dtype == AFFINE
    if a.shape != b.shape:
        return False
    atoms = (a["a"] == b["a"]).all() and (a["b"] == b["b"]).all()
    return bool(atoms and np.allclose(a["s"], b["s"]) and np.allclose(a["o"], b["o"]))
