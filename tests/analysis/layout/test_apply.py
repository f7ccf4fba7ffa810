"""Operators that are written in new orders: what others read, names, constants, Transposes."""

from collections.abc import Mapping

import numpy as np
import pytest

from tests.small import made_by, named, ops, parsed
from tiered import Model
from tiered.analysis.layout.apply import Writer, positions
from tiered.analysis.layout.cost import tensor_costs_of
from tiered.analysis.layout.layout_conversion import reach_of
from tiered.analysis.layout.layout_region import LayoutRegion
from tiered.analysis.layout.sizes import LayoutSizes
from tiered.runtime import Session

TO, BACK = "Transpose<perm=[2,0,1]>", "Transpose<perm=[1,2,0]>"


def written(
    text: str, *names: str, runs: bool = True, wanted: Mapping[str, str] | None = None
) -> Model:
    """Write the operators that make these values in their other order; the model is the same."""
    before, model = parsed(text), parsed(text)
    reach = reach_of(model, wanted)
    free = reach.free
    region = LayoutRegion(reach, free, tensor_costs_of(free, LayoutSizes()))
    assignment = {each: int(each.node.output.name in names) for each in free}
    assert sum(assignment.values()) == len(names)
    Writer(region, assignment, positions(model)).write()
    model.check_view(types=True)
    if runs:
        draw = np.random.default_rng(0)
        feeds = {
            value.name: draw.standard_normal([int(str(dim)) for dim in value.shape or ()]).astype(
                np.float32
            )
            for value in before.main.inputs
        }
        expected, found = (Session(each.to_proto()).run(feeds) for each in (before, model))
        for name, array in expected.items():
            np.testing.assert_array_equal(found[name], array)
    return model


def test_nodes_are_numbered_with_bodies_before_them() -> None:
    model = parsed(
        """(float[2] x, bool c) => (float[2] y) { a = Relu(x)
        b = If(c) <then_branch = t () => (float[2] p) { p = Neg(a) },
                   else_branch = e () => (float[2] q) { q = Abs(a) }>
        y = Exp(b) }"""
    )
    found = {node.op_type: place for node, place in positions(model).items()}
    assert found["Relu"] < min(found["Neg"], found["Abs"])
    assert max(found["Neg"], found["Abs"]) < found["If"] < found["Exp"]
    assert sorted(found.values()) == [0, 1, 2, 3, 4]


def test_functions_are_numbered_too() -> None:
    model = parsed(
        """<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
        g (float[2] x) => (float[2] y) { y = own.F(x) }
        <domain: "own", opset_import: ["" : 21]> F (v) => (w) { w = Relu(v) }"""
    )
    assert {node.op_type: place for node, place in positions(model).items()} == {"F": 0, "Relu": 1}


def test_an_operator_reads_the_order_that_is_there() -> None:
    model = written(
        f"(float[2,3,4] x) => (float[2,3,4] y) {{ t = {TO}(x)  [own] r = Relu(t)  y = {BACK}(r) }}",
        "r",
    )
    assert ops(model) == ["Relu"]
    (node,) = model.main.nodes
    assert node.name == "own"
    assert node.inputs[0] is named(model, "x")
    assert node.output.name == "y"


def test_other_readers_get_the_order_that_they_had() -> None:
    model = written(
        f"""(float[2,3,4] x) => (float[2,3,4] y, float[4,2,3] z) {{
        t = {TO}(x)  r = Relu(t)  y = {BACK}(r)  z = Neg(r) }}""",
        "r",
    )
    assert sorted(ops(model)) == ["Neg", "Relu", "Transpose"]
    transpose = made_by(model, "z").inputs[0]
    assert transpose is not None
    assert transpose.producer is not None
    assert transpose.producer.perm == (2, 0, 1)


def test_an_output_in_the_old_order_is_transposed_behind_the_operator() -> None:
    model = written(f"(float[2,3,4] x) => (float[4,2,3] y) {{ t = {TO}(x)  y = Relu(t) }}", "y")
    assert ops(model) == ["Relu", "Transpose"]
    assert made_by(model, "y").perm == (2, 0, 1)


def test_constants_are_permuted_once() -> None:
    text = f"""(float[2,3,4] x, float[2,3,4] v) => (float[2,3,4] y, float[2,3,4] z)
        <float[4,2,3] k = {{{",".join(map(str, range(24)))}}}> {{
        t = {TO}(x)  a = Add(t, k)  y = {BACK}(a)  u = {TO}(v)  b = Mul(u, k)  z = {BACK}(b) }}"""
    model = written(text, "a", "b")
    assert ops(model) == ["Add", "Mul"]
    first, second = (node.inputs[1] for node in model.main.nodes)
    assert first is second
    assert first is not None
    assert first.const is not None
    assert first.shape == (2, 3, 4)
    np.testing.assert_array_equal(
        first.const, np.arange(24, dtype=np.float32).reshape(4, 2, 3).transpose(1, 2, 0)
    )
    assert model.main.value("k") is None


def test_a_constant_that_is_the_same_in_both_orders_stays() -> None:
    text = f"""(float[2,3,4] x) => (float[2,3,4] y) <float k = {{2}}> {{
        t = {TO}(x)  a = Add(t, k)  y = {BACK}(a) }}"""
    model = written(text, "a")
    assert made_by(model, "y").inputs[1] is named(model, "k")


def test_a_missing_order_is_made_once() -> None:
    text = f"""(float[2,3,4] x) => (float[2,3,4] y, float[2,3,4] z) {{
        t = {TO}(x)  r = Relu(x)  a = Add(t, t)  y = {BACK}(a)  s = Neg(t)  z = Mul(r, x) }}"""
    model = written(text.replace("z = Mul", "w = Exp(s)  z = Mul").replace(
        "float[2,3,4] z)", "float[2,3,4] z, float[4,2,3] w)"), "a")  # fmt: skip
    assert ops(model).count("Transpose") == 1


def test_dims_of_one_that_change_places_are_a_reshape() -> None:
    text = (
        """(float[2,1,4] x) => (float[1,2,4] y) { t = Transpose<perm=[1,0,2]>(x)  y = Relu(t) }"""
    )
    model = written(text, "y")
    assert ops(model) == ["Relu", "Reshape"]
    target = made_by(model, "y").inputs[1]
    assert target is not None
    assert target.const is not None
    assert target.const.tolist() == [1, 2, 4]


@pytest.mark.parametrize(
    ("shape", "made", "op_type"),
    [
        ("N,1,4", "1,N,4", "Reshape"),
        ("N,1,M", "1,N,M", "Transpose"),
        ("0,1,4", "1,0,4", "Transpose"),
        ("2,3,4", "3,2,4", "Transpose"),
    ],
)
def test_a_reshape_has_one_unknown_dim_and_none_of_0(shape: str, made: str, op_type: str) -> None:
    text = (
        f"(float[{shape}] x) => (float[{made}] y) {{ t = Transpose<perm=[1,0,2]>(x)  y = Relu(t) }}"
    )
    model = written(text, "y", runs=False)
    assert ops(model) == ["Relu", op_type]


def test_sizes_that_do_not_depend_on_the_order_are_read_from_the_new_operator() -> None:
    text = f"""(float[2,3,4] x) => (float[2,3,4] y, float[2,3,4] i) {{
        t = {TO}(x)  d, m = Dropout(t)  y = {BACK}(d)  c = Cast<to=1>(m)  i = {BACK}(c) }}"""
    model = written(text, "d", "c")
    assert sorted(ops(model)) == ["Cast", "Dropout"]


def test_views_in_a_body_are_not_read_outside() -> None:
    text = f"""(float[2,3,4] x, bool c) => (float[2,3,4] y, float[4,2,3] z) {{
        y = If(c) <then_branch = t () => (float[2,3,4] p) {{
                       a = {TO}(x)  b = Relu(a)  p = {BACK}(b) }},
                   else_branch = e () => (float[2,3,4] q) {{ q = Neg(x) }}>
        u = {TO}(x)  z = Exp(u) }}"""
    model = written(text, "b", runs=False)
    (then,) = (graph for graph in model.graphs() if graph.name == "t")
    assert [node.op_type for node in then.nodes] == ["Relu"]


def test_the_types_of_results_that_no_inference_knows_are_kept() -> None:
    text = """(float[1,2,4,5] x) => (float[1,3,4,5] y) <float[3,2,1,1] w = {1,2,3,4,5,6}> {
        c = Conv(x, w)  y = Relu(c) }"""
    model = written(text, "c", "y", wanted={"Conv": "NHWC"})
    (call,) = (node for node in model.main.nodes if node.domain)
    assert call.output.shape == (1, 4, 5, 3)
    assert call.output.dtype == 1
    (relu,) = model.main.nodes_of("Relu")
    assert relu.inputs[0] is call.output
    assert relu.output.shape == (1, 4, 5, 3)


def test_a_shape_is_read_in_the_old_order() -> None:
    text = f"""(float[2,3,4] x) => (float[2,3,4] y, int64[3] n) {{
        t = {TO}(x)  r = Relu(t)  s = Shape(r)  n = Neg(s)  y = {BACK}(r) }}"""
    model = written(text, "r", "s")
    assert sorted(ops(model)) == ["Gather", "Neg", "Relu", "Shape"]
    (shape,) = model.main.nodes_of("Shape")
    assert shape.inputs[0] is named(model, "y")


def test_a_shape_that_is_an_output_keeps_its_name() -> None:
    text = f"""(float[2,3,4] x) => (float[2,3,4] y, int64[3] s) {{
        t = {TO}(x)  r = Relu(t)  [own] s = Shape(r)  y = {BACK}(r) }}"""
    model = written(text, "r", "s")
    assert named(model, "s").is_graph_output
    assert made_by(model, "s").op_type == "Gather"
    # The Gather is another operator than that of the name.
    assert [node.name for node in model.main.nodes] == ["Relu", "own_1", "Gather"]


def test_an_operator_that_becomes_another_one_does_not_give_its_name_on() -> None:
    text = f"""(float[2,3,4] x) => (float[4,2,3] y) {{ t = {TO}(x)  [own] y = Relu(t) }}"""
    model = written(text, "y")
    assert [node.name for node in model.main.nodes if node.op_type == "Relu"] == ["own"]


def test_constants_of_a_body_are_not_those_of_another_one() -> None:
    numbers = ",".join(map(str, range(24)))
    own = """(float[2,3,4] x, bool c) => (float[2,3,4] y) {{
        y = If(c) <then_branch = t () => (float[2,3,4] p)
            <float[4,2,3] k = {{{numbers}}}> {{
                a = {TO}(x)  b = Add(a, k)  p = {BACK}(b) }},
                   else_branch = e () => (float[2,3,4] q)
            <float[4,2,3] l = {{{numbers}}}> {{
                d = {TO}(x)  f = Mul(d, l)  q = {BACK}(f) }}> }}"""
    own = own.format(TO=TO, BACK=BACK, numbers=numbers)
    shared = own.replace(f"<float[4,2,3] k = {{{numbers}}}>", "").replace(
        f"<float[4,2,3] l = {{{numbers}}}>", ""
    )
    shared = shared.replace("y) {", f"y) <float[4,2,3] k = {{{numbers}}}> {{", 1)
    for text in (own, shared.replace("Mul(d, l)", "Mul(d, k)")):
        model = written(text, "b", "f", runs=False)
        inner = {graph.name: graph for graph in model.graphs() if not graph.is_main}
        for graph in inner.values():
            (node,) = graph.nodes
            constant = node.inputs[1]
            assert constant is not None
            assert constant.owner is graph
            assert constant.shape == (2, 3, 4)


def test_a_constant_that_gets_more_axes_is_made_for_each_reader() -> None:
    turned = "Transpose<perm=[2,1,0]>"
    text = f"""(float[2,3,4] x, float[2,3,4] v) => (float[2,3,4] y, float[2,3,4] z)
        <float[3,2] k = {{1,2,3,4,5,6}}> {{
        t = {turned}(x)  a = Add(t, k)  y = {turned}(a)
        u = {turned}(v)  b = Mul(u, k)  z = {turned}(b) }}"""
    model = written(text, "a", "b")
    assert ops(model) == ["Add", "Mul"]
    assert [value.shape for node in model.main.nodes for value in node.inputs[1:] if value] == [
        (2, 3, 1)
    ] * 2


def test_what_is_computed_of_constants_is_transposed() -> None:
    text = f"""(float[2,3,4] x) => (float[2,3,4] y) <float[2,3,4] k = {{{",".join("2" * 24)}}}> {{
        t = {TO}(x)  c = {TO}(k)  a = Add(t, c)  y = {BACK}(a) }}"""
    model = written(text, "a")
    assert ops(model) == ["Transpose", "Transpose", "Add"]
    assert made_by(model, "y").inputs[0] is named(model, "x")
