"""Solutions are optimal: compared with all assignments, on the topologies of models."""

import itertools
import math
import random
from collections.abc import Callable
from typing import Any

import onnx
import pytest
from hypothesis import given, settings, strategies as st

from tests.conformance.random_networks import random_network
from tiered import Model, get_pass
from tiered.analysis.layout import solve as solve_module
from tiered.analysis.layout.cost import tensor_costs_of
from tiered.analysis.layout.layout_conversion import reach_of
from tiered.analysis.layout.layout_region import LayoutRegion, regions
from tiered.analysis.layout.search_memory import Solutions
from tiered.analysis.layout.sizes import LayoutSizes
from tiered.analysis.layout.solve import _expand, by_time, cheapest, is_allowed, solve
from tiered.analysis.layout.work import estimate_work
from tiered.runtime import Session, make_inputs
from tiered.testing import parse

TO_NCHW, TO_NHWC = "Transpose<perm=[0,3,1,2]>", "Transpose<perm=[0,2,3,1]>"


class Body:
    """Model text as converters from NHWC write it: each Conv is between two Transposes."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.weights: dict[str, str] = {}

    def add(self, text: str) -> str:
        name = f"t{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def weight(self, *dims: int) -> str:
        name = f"w{len(self.weights)}"
        count = 1
        for dim in dims:
            count *= dim
        numbers = ",".join(str((at % 7 - 3) / 4) for at in range(count))
        self.weights[name] = f"float[{','.join(map(str, dims))}] {name} = {{{numbers}}}"
        return name

    def conv(self, x: str, channels: int = 4, out: int = 4) -> str:
        inner = self.add(f"{TO_NCHW}({x})")
        made = self.add(f"Conv({inner}, {self.weight(out, channels, 1, 1)})")
        return self.add(f"{TO_NHWC}({made})")

    def model(self, y: str, out: str = "1,4,4,4") -> str:
        lines = "\n".join([*self.lines, f"y = Identity({y})"])
        weights = ", ".join(self.weights.values())
        return f"(float[1,4,4,4] x) => (float[{out}] y) <{weights}> {{ {lines} }}"


def residual(body: Body) -> str:
    x = body.conv("x")
    a = body.add(f"Relu({body.conv(x)})")
    b = body.conv(a)
    return body.model(body.conv(body.add(f"Relu({body.add(f'Add({x}, {b})')})")))


def forked(body: Body) -> str:
    x = body.add(f"Relu({body.conv('x')})")
    parts = [body.conv(x), body.conv(body.add(f"Sigmoid({x})")), x]
    return body.model(body.conv(body.add(f"Sum({', '.join(parts)})")))


def concatenated(body: Body) -> str:
    x = body.conv("x")
    parts = [body.add(f"Relu({body.conv(x)})") for _ in range(2)]
    whole = body.add(f"Concat<axis=3>({', '.join(parts)}, {x})")
    return body.model(body.conv(whole, channels=12))


def squeeze_excite(body: Body) -> str:
    x = body.conv("x")
    axes = "axes"
    body.weights["axes"] = "int64[2] axes = {1,2}"
    pooled = body.add(f"ReduceMean<keepdims=1>({x}, {axes})")
    gate = body.add(f"Sigmoid({body.conv(body.add(f'Relu({body.conv(pooled)})'))})")
    return body.model(body.conv(body.add(f"Mul({x}, {gate})")))


def u_net(body: Body) -> str:
    body.weights["scales"] = "float[4] scales = {1.0,2.0,2.0,1.0}"
    skip = body.conv("x")
    inner = body.add(f"{TO_NCHW}({skip})")
    down = body.add(f"{TO_NHWC}({body.add(f'MaxPool<kernel_shape=[2,2],strides=[2,2]>({inner})')})")
    up = body.add(f'Resize<mode="nearest">({body.conv(down)}, , scales)')
    return body.model(body.conv(body.add(f"Concat<axis=3>({skip}, {up})"), channels=8))


def detection_head(body: Body) -> str:
    body.weights["shape"] = "int64[3] shape = {1,16,4}"
    x = body.add(f"Relu({body.conv('x')})")
    rows = [body.add(f"Reshape({body.conv(x)}, shape)") for _ in range(2)]
    return body.model(body.add(f"Concat<axis=1>({', '.join(rows)})"), out="1,32,4")


def quantized(body: Body) -> str:
    body.weights["s"] = "float s = {0.5}"
    body.weights["z"] = "uint8 z = {128}"
    x = body.conv("x")
    unit = body.add(f"DequantizeLinear({body.add(f'QuantizeLinear({x}, s, z)')}, s, z)")
    relu = body.add(f"Relu({body.conv(unit)})")
    return body.model(body.conv(body.add(f"Add({relu}, {unit})")))


# How many Transposes the interface needs: one where NHWC comes in, one where it goes out.
TOPOLOGIES: dict[Callable[[Body], str], int] = {
    residual: 2,
    forked: 2,
    concatenated: 2,
    squeeze_excite: 2,
    u_net: 2,
    detection_head: 2,
    quantized: 2,
}

each_topology = pytest.mark.parametrize("build", TOPOLOGIES, ids=lambda build: build.__name__)


def unpruned(text: str) -> LayoutRegion:
    """Return one region of all operators of a model with all their choices."""
    reach = reach_of(Model.from_proto(parse(text)))
    free = reach.free
    estimate_work(reach, free, LayoutSizes())
    return LayoutRegion(reach, free, tensor_costs_of(free, LayoutSizes()))


def most_saved(region: LayoutRegion) -> int:
    """Return the saving of the best assignment, found by enumeration."""
    here = region.cost(dict.fromkeys(region.operators, 0))
    costs = (
        region.cost(dict(zip(region.operators, choices, strict=True)))
        for choices in itertools.product(*(operator.candidates for operator in region.operators))
    )
    best = min((cost for cost in costs if is_allowed(cost, here)), key=by_time)
    return by_time(here) - by_time(best)


def saved(text: str) -> int:
    """Return the saving of the solution of a model, by cuts; small regions are enumerated too."""
    by_cuts, by_enumeration = 0, 0
    for region in regions(reach_of(Model.from_proto(parse(text))), LayoutSizes()):
        here = by_time(region.cost(dict.fromkeys(region.operators, 0)))
        by_enumeration += here - by_time(region.cost(cheapest(region)))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("tiered.analysis.layout.solve.ENUMERATED", 0)
            by_cuts += here - by_time(region.cost(cheapest(region)))
    assert by_enumeration == by_cuts
    return by_cuts


@each_topology
def test_no_assignment_is_better(build: Callable[[Body], str]) -> None:
    text = build(Body())
    assert saved(text) == most_saved(unpruned(text)) > 0


CHANNELS_FIRST, CHANNELS_LAST = "1,2,3,4", "1,3,4,2"


@st.composite
def models_in_two_orders(draw: st.DrawFn) -> str:
    """Draw a model of Transposes, operators that can be permuted, and some that cannot."""
    lines: list[str] = []
    known = [("x", True), ("z", False)]
    for at in range(draw(st.integers(2, 9))):
        name, (operand, is_first) = f"t{at}", draw(st.sampled_from(known))
        kind = draw(st.sampled_from(["Relu", "Add", "Turn", "Turn", "Pool", "ReduceMax"]))
        if kind == "Turn":
            lines.append(f"{name} = {TO_NHWC if is_first else TO_NCHW}({operand})")
            is_first = not is_first
        elif kind == "Add":
            others = [other for other, first in known if first == is_first]
            lines.append(f"{name} = Add({operand}, {draw(st.sampled_from(others))})")
        elif kind == "Pool":
            lines.append(f"{name} = MaxPool<kernel_shape=[1,1]>({operand})")
        elif kind == "ReduceMax":
            axis = 1 if is_first else 3
            lines.append(f"{name}m = ReduceMax<axes=[{axis}], keepdims=1>({operand})")
            lines.append(f"{name} = Mul({operand}, {name}m)")
        else:
            lines.append(f"{name} = Relu({operand})")
        known.append((name, is_first))
    ends = draw(st.lists(st.sampled_from(known[2:]), min_size=1, max_size=3, unique=True))
    outputs = []
    for at, (end, is_first) in enumerate(ends):
        lines.append(f"y{at} = Identity({end})")
        outputs.append(f"float[{CHANNELS_FIRST if is_first else CHANNELS_LAST}] y{at}")
    return (
        f"(float[{CHANNELS_FIRST}] x, float[{CHANNELS_LAST}] z) => ({', '.join(outputs)}) "
        f"{{ {' '.join(lines)} }}"
    )


@settings(max_examples=20)
@given(text=models_in_two_orders())
def test_with_two_orders_the_solution_is_optimal(text: str) -> None:
    assert saved(f'<ir_version: 8, opset_import: ["": 17]> g {text}') == most_saved(
        unpruned(f'<ir_version: 8, opset_import: ["": 17]> g {text}')
    )


ORDERS = ((0, 1, 2), (2, 0, 1), (0, 2, 1), (1, 0, 2))


class Several:
    """A random model whose tensors are permutations of one shape."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.known = [("x", 0), ("z", 1)]
        for at in range(self.random.randint(4, 7)):
            self.add(f"t{at}")

    def add(self, name: str) -> None:
        operand, own = self.random.choice(self.known)
        match self.random.choice(["Relu", "Add", "Turn", "Turn", "Fixed", "Reduce"]):
            case "Turn":
                other = self.random.choice([at for at in range(len(ORDERS)) if at != own])
                perm = [ORDERS[own].index(axis) for axis in ORDERS[other]]
                self.lines.append(f"{name} = Transpose<perm={perm}>({operand})")
                own = other
            case "Add":
                same = self.random.choice([each for each, order in self.known if order == own])
                self.lines.append(f"{name} = Add({operand}, {same})")
            case "Fixed":
                self.lines.append(f"{name} = acme.Fixed({operand})")
            case "Reduce":
                axis = ORDERS[own].index(0)
                self.lines.append(f"{name}m = ReduceMax<axes=[{axis}], keepdims=1>({operand})")
                self.lines.append(f"{name} = Mul({operand}, {name}m)")
            case _:
                self.lines.append(f"{name} = Relu({operand})")
        self.known.append((name, own))

    def text(self) -> str:
        def declared(name: str, order: int) -> str:
            return f"float[{','.join(str(2 + axis) for axis in ORDERS[order])}] {name}"

        ends = self.random.sample(self.known[2:], 2)
        lines = [*self.lines, *(f"y{at} = Identity({end})" for at, (end, _) in enumerate(ends))]
        inputs = ", ".join(declared(name, order) for name, order in self.known[:2])
        outputs = ", ".join(declared(f"y{at}", order) for at, (_, order) in enumerate(ends))
        # The outputs of acme operators have declared types.
        types = ", ".join(declared(name, order) for name, order in self.known[2:])
        return (
            f'<ir_version: 8, opset_import: ["": 17, "acme": 1]> g ({inputs}) => ({outputs}) '
            f"<{types}> {{ {' '.join(lines)} }}"
        )


@pytest.mark.parametrize("seed", range(30))
def test_with_several_orders_the_solution_is_optimal(seed: int) -> None:
    text = Several(seed).text()
    whole = unpruned(text)
    if math.prod(len(operator.candidates) for operator in whole.operators) < 5000:
        assert saved(text) == most_saved(whole)


@each_topology
def test_only_the_interface_needs_transposes(build: Callable[[Body], str]) -> None:
    proto = parse(build(Body()))
    converted = get_pass("convert_layout").apply(proto)
    onnx.checker.check_model(converted, full_check=True)
    left = [node for node in converted.graph.node if node.op_type == "Transpose"]
    assert len(left) == TOPOLOGIES[build]
    feeds = make_inputs(proto, seed=1).feeds
    before, after = (Session(each).run(feeds)["y"] for each in (proto, converted))
    assert abs(before - after).max() < 1e-5


def test_a_second_run_changes_nothing() -> None:
    model = Model.from_proto(parse(residual(Body())))
    get_pass("convert_layout").apply(model)
    mark = model.mark()
    get_pass("convert_layout").apply(model)
    assert not model.changed_since(mark)


def test_two_runs_give_the_same_bytes() -> None:
    protos = [get_pass("convert_layout").apply(parse(u_net(Body()))) for _ in range(2)]
    assert protos[0].SerializeToString() == protos[1].SerializeToString()


def test_equal_operators_share_their_choices() -> None:
    text = """(float[2,3,4] x, float[2,3,4] z) => (float[2,8,3] y, float[2,4,6] w) {
        a = Transpose<perm=[0,2,1]>(x)  y = Concat<axis=1>(a, a)
        b = Transpose<perm=[0,2,1]>(z)  c = Concat<axis=1>(b, b)  d = Concat<axis=2>(b, b)
        e = Add(c, y)  w = Relu(d) }"""
    reach = reach_of(Model.from_proto(parse(text)))
    tables = {each.node.output.name: each.table for each in reach.operators.values()}
    assert tables["y"] is tables["c"]
    assert tables["d"] is not tables["c"]


@pytest.mark.parametrize("number", [0, 157])
def test_an_operator_is_in_one_region(number: int) -> None:
    # In number 157 a product has keys that a Conv makes in the same order in all of its choices.
    model = Model.from_proto(random_network(number))
    get_pass("infer_shapes")(model)
    found = regions(reach_of(model, {"Conv": "NHWC"}), LayoutSizes())
    operators = [operator for region in found for operator in region.operators]
    assert len(set(operators)) == len(operators) > 0


FORK = """(float[2,3,4] x) => (float[2,3,4] y, float[4,2,3] z) {
    t = Transpose<perm=[2,0,1]>(x)  r = Relu(t)  y = Transpose<perm=[1,2,0]>(r)  z = Neg(r) }"""


def test_a_move_to_the_order_that_is_asked_for_is_taken_whatever_it_costs() -> None:
    region = unpruned(FORK)
    relu, neg = region.operators
    present = {relu: 0, neg: 0}
    for wanted, now, proposed, expected in (
        (None, 0, 1, None),
        (0, 0, 1, None),
        (1, 0, 1, 1),
        (1, 1, 0, None),
        (0, 1, 0, 0),
    ):
        neg.wanted = wanted
        found = _expand(region, {**present, neg: now}, {neg: proposed}, by_time, {})
        assert found == (None if expected is None else {relu: 0, neg: expected}), wanted


def test_cuts_find_what_a_comparison_of_all_assignments_finds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = [
        FORK,
        *(build(Body()) for build in TOPOLOGIES),
        *(Several(at).text() for at in range(30)),
    ]
    for text, wanted in itertools.product(texts, ({}, {"Conv": "NHWC"})):
        for region in regions(reach_of(Model.from_proto(parse(text)), wanted), LayoutSizes()):
            monkeypatch.setattr(solve_module, "ENUMERATED", 1 << 10)
            if not solve_module._costs_of_all(region):
                continue
            expected = region.cost(cheapest(region))
            monkeypatch.setattr(solve_module, "ENUMERATED", 0)
            assert region.cost(cheapest(region)) == expected, text


def test_assignments_are_compared_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    region = unpruned(FORK)
    for most, count in ((3, 0), (4, 4), (5, 4)):
        monkeypatch.setattr(solve_module, "ENUMERATED", most)
        assert len(solve_module._costs_of_all(region)) == count


def test_a_large_region_is_searched_from_one_start(monkeypatch: pytest.MonkeyPatch) -> None:
    region = unpruned(
        """(float[2,3,4] x) => (float[4,2,3] y, float[3,4,2] z, float[2,3,4] w) {
        r = Relu(x)  t = Transpose<perm=[2,0,1]>(r)  u = Transpose<perm=[1,2,0]>(r)
        a = Neg(t)  y = Exp(a)  b = Abs(u)  z = Exp(b)  c = Neg(r)  w = Tanh(c) }"""
    )
    moves = list[int]()

    def counted(*given: Any, expand: Callable[..., Any] = solve_module._expand) -> Any:
        moves.append(1)
        return expand(*given)

    monkeypatch.setattr(solve_module, "_expand", counted)
    found = []
    for most in (1000, len(region.operators), len(region.operators) - 1):
        monkeypatch.setattr(solve_module, "LARGE_REGION", most)
        moves.clear()
        solve_module._search(region, dict.fromkeys(region.operators, 0), by_time)
        found.append(len(moves))
    whole, limit, large = found
    assert whole == limit > large


def test_equal_regions_are_solved_once() -> None:
    layer = """
        t{0} = Transpose<perm=[0,2,3,1]>(x{0})  r{0} = Relu(t{0})
        y{0} = Transpose<perm=[0,3,1,2]>(r{0})"""
    widths = (4, 4, 4, 5)
    ends = [
        ", ".join(f"float[1,2,3,{width}] {name}{at}" for at, width in enumerate(widths))
        for name in "xy"
    ]
    body = "".join(layer.format(at) for at in range(len(widths)))
    model = Model.from_proto(parse(f"({ends[0]}) => ({ends[1]}) {{ {body} }}"))
    found = list(regions(reach_of(model), LayoutSizes()))
    solutions: Solutions = {}
    for region in found:
        solve(region, solutions)
    assert (len(found), len(solutions)) == (4, 2)
