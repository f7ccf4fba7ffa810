"""Groups of nodes that return to float: each node once, and neighbours together."""

import numpy as np
import pytest
from onnx import numpy_helper

from tests.small import made_by, parsed
from tiered import DataType, Model, Node
from tiered.numerics.precision.cast_plan import Price, plan_of
from tiered.numerics.precision.lower import PrecisionRules, RuledNarrowing
from tiered.numerics.precision.return_groups import rankings_of, weight_bytes
from tiered.numerics.precision.variables import TypeVariable, variables_of
from tiered.testing import parse


def _chain(length: int) -> tuple[list[TypeVariable], list[Node]]:
    steps = " ".join(f"v{at + 1} = Sin(v{at})" for at in range(length))
    text = f"(float[4] v0) => (float[4] v{length}) {{ {steps} }}"
    model = Model.from_proto(parse(text))
    model.refresh_types()
    narrowing = RuledNarrowing(DataType.FLOAT16, PrecisionRules(), {})
    return variables_of(model, narrowing, keeps_io=True), list(model.main.topological_order())


@pytest.mark.parametrize("seed", range(6))
def test_each_ranking_has_each_node_once(seed: int) -> None:
    source = np.random.default_rng(seed)
    variables, nodes = _chain(int(source.integers(1, 12)))
    noise = {node: float(source.uniform(0, 1)) ** 4 for node in nodes}
    for groups in rankings_of(variables, nodes, noise):
        assert all(groups)
        flat = [node for group in groups for node in group]
        assert sorted(flat, key=lambda node: node.id) == nodes


def test_the_node_with_the_noise_is_the_first() -> None:
    variables, nodes = _chain(9)
    noise = dict.fromkeys(nodes, 1e-6) | {nodes[4]: 1.0}
    assert rankings_of(variables, nodes, noise)[0][0] == (nodes[4],)


def test_a_node_between_two_is_returned_with_them() -> None:
    """Two Casts cost more than the node does in float."""
    variables, nodes = _chain(9)
    noise = dict.fromkeys(nodes, 1e-6) | {nodes[3]: 1.0, nodes[5]: 1.0}
    assert nodes[4] in rankings_of(variables, nodes, noise)[-1][0]


def test_without_noise_all_nodes_are_one_group() -> None:
    variables, nodes = _chain(3)
    assert rankings_of(variables, nodes, {}) == [[tuple(nodes)]]


@pytest.mark.parametrize(
    ("noise", "expected"),
    [
        ([1, 0.1, 0.1, 0.01], ["1 2 3 4", "4 2 1 3", "4 123"]),
        ([0.1, 0.01, 1, 0.1], ["3 4 1 2", "4 3 2 1", "34 2 1"]),
        ([1, 0, 0.5, 0], ["3 1 24", "34 12"]),
    ],
)
def test_weights_in_float_have_a_price_by_their_share(
    noise: list[float], expected: list[str]
) -> None:
    proto = parse("""(float[64] v0) => (float[64] v4) <float[1] u = {3}> {
        v1 = Mul(v0, w)  v2 = Sin(v1)  v3 = Add(v2, u)  v4 = Sin(v3) }""")
    proto.graph.initializer.append(numpy_helper.from_array(np.ones(64, np.float32), "w"))
    model = Model.from_proto(proto)
    model.refresh_types()
    narrowing = RuledNarrowing(DataType.FLOAT16, PrecisionRules(), {})
    variables, nodes = variables_of(model, narrowing, keeps_io=True), model.main.nodes
    rankings = rankings_of(variables, nodes, dict(zip(nodes, noise, strict=True)))
    assert [
        " ".join("".join(node.output.name[1:] for node in group) for group in groups)
        for groups in rankings
    ] == expected


def test_a_price_decides_the_type_of_a_node() -> None:
    variables, nodes = _chain(3)
    price = {nodes[1]: Price(wide=0, low=10_000)}
    low = {each.node for each in plan_of(variables, price).low}
    assert low == {nodes[0], nodes[2]}


@pytest.mark.parametrize(
    ("line", "nbytes"),
    [
        ("Clip(x, , k)", 4),
        ("Add(x, w)", 8),
        ("Add(w, w)", 16),
        ("Gather(x, i)", 0),
        ("Neg(x)", 0),
    ],
)
def test_the_weights_of_a_node_are_constants_of_floats(line: str, nbytes: int) -> None:
    model = parsed(
        f"""(float[2] x) => (float[2] y) <float k = {{1}}, float[2] w = {{1,2}},
        int64[2] i = {{0,1}}> {{ y = {line} }}"""
    )
    assert weight_bytes(made_by(model, "y")) == nbytes
