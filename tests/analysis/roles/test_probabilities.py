"""Probabilities stay wide from the operator that makes them to a logarithm."""

from tests.analysis.roles.found import HALF, roles_in
from tests.small import parsed
from tiered.analysis.roles.probabilities import probability_roles
from tiered.analysis.roles.role import Narrow, Role
from tiered.graph import DataType

HEAD = "(float[2,4] x, float[2,4] z) => (float[2,4] y) <float e = {1e-9}, float[2,4] p> "


def found(nodes: str, narrow: Narrow = HALF) -> set[str]:
    roles = roles_in(
        f"{HEAD}{{ {nodes} }}", lambda model, low, _: probability_roles(model, low), narrow=narrow
    )
    assert {*roles.values()} <= {"probability"}
    return {*roles}


def test_the_nodes_from_a_probability_to_its_logarithm() -> None:
    for nodes, expected in (
        ("p = Softmax(x)  y = Log(p)", "py"),
        ("p = Sigmoid(x)  y = Log(p)", "py"),
        ("p = Exp(x)  y = Log(p)", "py"),
        ("p = Softplus(x)  y = Log(p)", "py"),
        ("p = Tanh(x)  y = Log(p)", ""),
        ("p = Softmax(x)  y = Neg(p)", ""),
        ("y = Log(x)", ""),
        # movement, sums, bounds and means are between; a Neg makes no probability
        ("p = Softmax(x)  a = Add(p, e)  b = Clip(a, e)  y = Log(b)", "paby"),
        ("p = Softmax(x)  a = ReduceMean(p)  b = ReduceSum(a)  y = Log(b)", "paby"),
        ("p = Softmax(x)  a = Identity(p)  b = ReduceMax(a)  y = Log(b)", "paby"),
        ("p = Softmax(x)  a = Neg(p)  y = Log(a)", ""),
        ("p = Softmax(x)  a = Tanh(p)  y = Log(a)", ""),
        ("n = Tanh(x)  a = Identity(n)  y = Log(a)", ""),
        # what is added to it is not on the way, nor is what a Softmax reads
        ("p = Sigmoid(x)  n = Tanh(z)  a = Add(p, n)  y = Log(a)", "pay"),
        ("p = Sigmoid(x)  a = Add(p, z)  y = Log(a)", "pay"),
        ("n = Exp(x)  p = Softmax(n)  y = Log(p)", "py"),
        ("p = Sigmoid(x)  q = Exp(z)  a = Mul(p, q)  b = Log(a)  y = Add(b, b)", "pqab"),
        ("p = Sigmoid(x)  a = Log(p)  b = Log(p)  y = Add(a, b)", "pab"),
        # of another domain
        ("p = acme.Softmax(x)  y = Log(p)", ""),
        ("p = Softmax(x)  y = acme.Log(p)", ""),
    ):
        assert found(nodes) == {*expected}, nodes


def test_the_reason_and_types_that_hold_small_numbers() -> None:
    nodes = "p = Softmax(x)  y = Log(p)"
    role = Role("probability", "a logarithm of it is infinite if it is 0")
    assert {*probability_roles(parsed(f"{HEAD}{{ {nodes} }}"), HALF).values()} == {role}
    assert found(nodes, Narrow.of(DataType.BFLOAT16)) == set()
    assert found(nodes, Narrow.of(DataType.FLOAT8E5M2)) == {"p", "y"}
