"""Orders of low peak: against all orders, and what they never do."""

from hypothesis import given, settings

from tests.extensions.memory.graphs import orders, sized_graphs, stretch
from tiered import Model
from tiered.extensions.memory import memory_plan, schedule_model
from tiered.testing import parse


def branches(count: int) -> str:
    """Return branches that grow eightfold and shrink again, in an order that holds all at once."""
    lines = [f"a{at} = Concat<axis=0>(x, x, x, x, x, x, x, x)" for at in range(count)]
    lines += [f"s{at} = Softmax(a{at})" for at in range(count)]
    lines += [f"b{at} = ReduceMean(s{at}, zero)" for at in range(count)]
    named = ", ".join(f"b{at}" for at in range(count))
    return (
        f"(float[4] x) => (float[1] y) <int64[1] zero = {{0}}> "
        f"{{ {' '.join(lines)} y = Sum({named}) }}"
    )


@given(sized_graphs(nodes=6))
@settings(max_examples=60, deadline=None)
def test_the_peak_is_the_lowest_of_all_orders(text: str) -> None:
    model = Model.from_proto(parse(text))
    whole = stretch(model)
    lowest = min(whole.peak(order) for order in orders(whole))
    before, was = memory_plan(model).peak, list(model.main.topological_order())
    schedule_model(model)
    assert memory_plan(model).peak == lowest
    if before == lowest:
        assert list(model.main.topological_order()) == was
    reloaded = Model.from_proto(model.to_proto())
    assert memory_plan(reloaded).peak == lowest
    assert not schedule_model(reloaded)


@given(sized_graphs(nodes=24))
@settings(max_examples=25, deadline=None)
def test_the_peak_of_a_longer_graph_never_rises(text: str) -> None:
    model = Model.from_proto(parse(text))
    before = memory_plan(model).peak
    changed = schedule_model(model)
    assert memory_plan(model).peak < before if changed else memory_plan(model).peak == before
    assert not schedule_model(model)


def test_branches_run_one_after_the_other() -> None:
    for count in (4, 40, 400):
        model = Model.from_proto(parse(branches(count)))
        assert memory_plan(model).peak == 16 + count * 128 + 128
        schedule_model(model)
        # x, a branch with its Softmax, and the results of the others.
        assert memory_plan(model).peak == 16 + 2 * 128 + (count - 1) * 4


def test_a_node_with_a_fixed_place_separates_stretches() -> None:
    parts, last = [], "x"
    for at in range(30):
        parts.append(
            f"a{at} = Concat<axis=0>({last}, {last}) b{at} = Concat<axis=0>({last}, {last}) "
            f"c{at} = ReduceMean(a{at}, zero) d{at} = ReduceMean(b{at}, zero) "
            f"e{at} = Add(c{at}, d{at})"
        )
        last = f"e{at}"
    text = f"(float[1] x) => (float[1] e29) <int64[1] zero = {{0}}> {{ {' '.join(parts)} }}"
    model = Model.from_proto(parse(text))
    before = memory_plan(model).peak
    schedule_model(model)
    assert memory_plan(model).peak < before
    names = [node.output.name for node in model.main.topological_order()]
    assert names[:5] == ["a0", "c0", "b0", "d0", "e0"]
    # The output is one of four bytes more than the others have at their peak.
    assert {name[1:] for name in names[-5:]} == {"29"}


def test_random_nodes_keep_their_order() -> None:
    text = """(float[8] x) => (float[1] y) <int64[1] zero = {0}> {
        a = RandomNormalLike(x)  b = RandomNormalLike(x)  c = RandomNormalLike(x)
        d = ReduceMean(c, zero)  e = ReduceMean(b, zero)  f = ReduceMean(a, zero)
        g = Sub(d, e)  y = Sub(g, f) }"""
    model = Model.from_proto(parse(text))
    assert schedule_model(model)
    nodes = [node.output.name for node in model.main.topological_order()]
    assert [name for name in nodes if name in "abc"] == ["a", "b", "c"]
    assert nodes.index("f") < nodes.index("b")


def test_bodies_are_ordered_too() -> None:
    body = (
        "() => (float[1] {0}) {{ {0}a = Concat<axis=0>(x, x, x) {0}b = Concat<axis=0>(x, x, x) "
        "{0}c = ReduceMean({0}a, zero) {0}d = ReduceMean({0}b, zero) {0} = Add({0}c, {0}d) }}"
    )
    text = (
        "(bool c, float[4] x) => (float[1] y) <int64[1] zero = {0}> { y = If(c) <"
        f"then_branch = t {body.format('p')}, else_branch = e {body.format('q')}> }}"
    )
    model = Model.from_proto(parse(text))
    before = memory_plan(model).peak
    assert schedule_model(model) == 2
    assert memory_plan(model).peak == before - 44
    model.check_view()


def test_a_constant_follows_its_consumer() -> None:
    text = """(float[4] x) => (float[1] y) { zero = Constant<value_ints=[0]>()
        one = Constant<value_float=1.0>()
        a = Concat<axis=0>(x, x)  b = Concat<axis=0>(x, x)
        c = ReduceMean(a, zero)  e = Add(b, one)  d = ReduceMean(e, zero)  y = Add(c, d) }"""
    model = Model.from_proto(parse(text))
    assert schedule_model(model)
    names = [node.output.name for node in model.main.topological_order()]
    assert names.index("one") == names.index("e") - 1
    assert names.index("zero") < names.index("c")


def test_an_order_by_depth_puts_each_node_after_the_longest_path_to_it() -> None:
    text = """(float[4] x) => (float[4] y) {
        a = Sin(x)  b = Cos(a)  c = Tanh(b)  d = Exp(x)  e = Add(a, d)  y = Add(c, e) }"""
    model = Model.from_proto(parse(text))
    assert schedule_model(model, by_depth=True) == 1
    assert "".join(node.output.name for node in model.main.topological_order()) == "adbecy"
    assert schedule_model(model, by_depth=True) == 0


def test_local_functions_keep_their_order() -> None:
    body = "x = Identity(p)" + branches(4).partition("{ ")[2].rpartition(" }")[0].replace(
        "zero", "axis"
    )
    text = f"""<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
        g (float[4] p) => (float[1] q) {{ q = own.f(p) }}
        <domain: "own", opset_import: ["" : 21]> f (p) => (y) {{
            axis = Constant<value_ints = [0]>()  {body} }}"""
    assert schedule_model(Model.from_proto(parse(text))) == 0
