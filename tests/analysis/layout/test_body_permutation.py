"""Permutations of the tensors that If, Loop and Scan pass into and out of their bodies."""

from collections.abc import Iterator
from functools import partial
from itertools import chain, repeat

import numpy as np
import onnx
import pytest

from tiered import Model, get_pass
from tiered.analysis.layout import body_permutation
from tiered.analysis.layout.body_permutation import (
    MAX_TRIALS,
    BodyConversion,
    BodyOrder,
    _body_tensors,
)
from tiered.analysis.layout.cost import Cost, transpose_cost
from tiered.analysis.layout.layout_conversion import reach_of
from tiered.analysis.layout.reach import Reach
from tiered.analysis.layout.sizes import LayoutSizes
from tiered.runtime import Session, make_inputs
from tiered.testing import parse

FIRST, LAST = "Transpose<perm=[0,3,1,2]>", "Transpose<perm=[0,2,3,1]>"


BRANCHES = f"""(float[1,3,4,5] x, bool c) => (float[1,3,2,3] y) {{
    z = If(c) <
        then_branch = g () => (float[1,3,4,3] a) {{
            p = MaxPool<kernel_shape=[2,2]>(x)  a = {LAST}(p)
        }},
        else_branch = h () => (float[1,3,4,3] b) {{
            q = AveragePool<kernel_shape=[2,2]>(x)  b = {LAST}(q)
        }}
    >
    r = Relu(z)
    t = {FIRST}(r)
    y = MaxPool<kernel_shape=[2,2]>(t)
}}"""

CARRIED = f"""(float[1,3,4,4] x, int64 n) => (float[1,3,4,4] y) {{
    u = MaxPool<kernel_shape=[1,1]>(x)
    v = {LAST}(u)
    w = Loop(n, , v) <body = b (int64 i, bool k, float[1,4,4,3] s) => (bool o, float[1,4,4,3] r) {{
        o = Identity(k)
        a = {FIRST}(s)
        m = MaxPool<kernel_shape=[3,3], pads=[1,1,1,1]>(a)
        e = {LAST}(m)
        r = Relu(e)
    }}>
    t = {FIRST}(w)
    y = MaxPool<kernel_shape=[1,1]>(t)
}}"""

STACKED = f"""(float[1,3,4,4] x, int64 n) => (float[n,1,3,4,4] y) {{
    z, w = Loop(n, , x) <
        body = b (int64 i, bool k, float[1,3,4,4] s)
            => (bool o, float[1,3,4,4] r, float[1,4,4,3] q)
        {{ o = Identity(k)  r = MaxPool<kernel_shape=[3,3], pads=[1,1,1,1]>(s)  q = {LAST}(r) }}
    >
    y = Transpose<perm=[0,1,4,2,3]>(w)
}}"""

SCANNED = f"""(float[1,3,5,4,4] x, float[1,4,4,3] s) => (float[1,4,4,3] z, float[1,3,5,4,4] y) {{
    t = Transpose<perm=[0,2,3,4,1]>(x)
    z, w = Scan<num_scan_inputs=1, scan_input_axes=[1], scan_output_axes=[-1],
        body = b (float[1,4,4,3] p, float[1,4,4,3] q) => (float[1,4,4,3] r, float[1,4,4,3] o) {{
            r = Relu(p)
            f = {FIRST}(q)
            m = MaxPool<kernel_shape=[3,3], pads=[1,1,1,1]>(f)
            o = {LAST}(m)
        }}
    >(s, t)
    y = Transpose<perm=[0,3,4,1,2]>(w)
}}"""


def counted(model: Model) -> int:
    return transpose_cost(reach_of(model), LayoutSizes()).transposes


def converted(text: str, feeds: dict[str, np.ndarray]) -> Model:
    """Return a model after the pass, which computes the same as before."""
    proto = parse(text)
    model = get_pass("convert_layout").apply(Model.from_proto(proto))
    model.check_view()
    result = model.to_proto()
    onnx.checker.check_model(result, full_check=True)
    feeds = {**make_inputs(proto, seed=1).feeds, **feeds}
    before, after = (Session(each).run(feeds) for each in (proto, result))
    for name, array in before.items():
        assert np.array_equal(array, after[name]), name
    return model


@pytest.mark.parametrize("taken", [True, False])
def test_both_branches_of_an_if_are_permuted(taken: bool) -> None:
    assert counted(converted(BRANCHES, {"c": np.array(taken)})) == 0


def test_a_carried_value_of_a_loop_is_permuted() -> None:
    assert counted(converted(CARRIED, {"n": np.array(3)})) == 0


def test_a_stacked_output_of_a_loop_is_permuted() -> None:
    assert counted(converted(STACKED, {"n": np.array(2)})) == 0


def test_scan_inputs_and_outputs_are_permuted() -> None:
    model = converted(SCANNED, {})
    assert counted(model) == 0
    (node,) = model.main.nodes_of("Scan")
    assert (node.attr("scan_input_axes"), node.attr("scan_output_axes")) == ((2,), (2,))


def test_a_permutation_that_saves_nothing_is_undone() -> None:
    text = BRANCHES.replace(f"t = {FIRST}(r)", "t = Identity(r)")
    text = text.replace(f"a = {LAST}(p)", "a = Reshape(p, s)")
    text = text.replace("bool c)", "bool c, int64[4] s)")
    model = Model.from_proto(parse(text.replace("float[1,3,2,3] y", "float[1,3,3,2] y")))
    mark = model.mark()
    get_pass("convert_layout").apply(model)
    assert not model.changed_since(mark)


def test_a_duplicate_output_of_a_body_is_not_permuted() -> None:
    text = BRANCHES.replace("z = If", "z, other = If")
    text = text.replace("=> (float[1,3,2,3] y)", "=> (float[1,3,2,3] y, float[1,3,4,3] other)")
    for name in "ab":
        one = f"float[1,3,4,3] {name}"
        text = text.replace(f"({one})", f"({one}, {one})")
    model = Model.from_proto(parse(text))
    mark = model.mark()
    get_pass("convert_layout").apply(model)
    assert not model.changed_since(mark)


def test_a_permutation_stays_if_it_lowers_the_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_TRIALS == 64
    now = Cost(10, 2)
    for after, most, is_kept, trials in (
        (Cost(10, 1), MAX_TRIALS, True, 5),
        (Cost(9, 2), MAX_TRIALS, True, 5),
        (Cost(10, 2), MAX_TRIALS, False, 4),
        (Cost(11, 1), MAX_TRIALS, False, 4),
        (Cost(9, 3), MAX_TRIALS, False, 4),
        (Cost(9, 3), 1, False, 1),
        (Cost(9, 1), 0, False, 0),
    ):
        monkeypatch.setattr(body_permutation, "MAX_TRIALS", most)
        model = Model.from_proto(parse(SCANNED))
        mark, tried, costs = model.mark(), list[Reach](), chain([now], repeat(after))

        def cost_of(reach: Reach, costs: Iterator[Cost] = costs) -> Cost:
            return next(costs)

        BodyConversion(model, partial(reach_of, model), tried.append, cost_of).run()
        assert (model.changed_since(mark), len(tried)) == (is_kept, trials), (after, most)


IF = """(float[2,3] x, bool c) => (float[2,3] y, float[3,2] z) { y, z = If(c) <
    then_branch = t () => (float[2,3] p, float[3,2] q) { p = Neg(x) q = Transpose(x) },
    else_branch = e () => (float[2,3] r, float[3,2] s) { r = Abs(x) s = Transpose(x) }> }"""
LOOP = """(float[2,3] x, int64 n, bool c) => (OUTPUTS) { RESULTS = Loop(n, c, x) <
    body = b (int64 i, bool g, float[2,3] v) => (bool on, float[2,3] w, float[3,2] u) {
    on = Identity(g) w = Neg(v) u = Transpose(v) }> }"""
SCAN = """(float[2,3] x, float[5,4,3] e) => (OUTPUTS) {
    RESULTS = Scan<num_scan_inputs = 1, body = b (float[2,3] v, float[4,3] f)
        => (float[2,3] w, float[3,4] u) { w = Neg(v) u = Transpose(f) }>(x, e) }"""


def tensors(text: str, results: str, opset: int = 21) -> list[str]:
    """Return each tensor: operand, inputs and outputs of bodies, output, axis, attribute."""
    outputs = ", ".join(f"float[] {each}" for each in results.split(", ") if each)
    text = text.replace("OUTPUTS", outputs).replace("RESULTS", results)
    found = []
    for each in _body_tensors(Model.from_proto(parse(text, opset=opset))):
        inside = " ".join(f"{'in' if is_input else 'out'}{at}" for _, is_input, at in each.inside)
        attribute = "" if each.attribute is None else f" {each.attribute[0]}[{each.attribute[1]}]"
        found.append(f"{each.slot} {inside} {each.place} {each.axis}{attribute}")
    return found


def test_the_tensors_that_are_inside_and_outside_of_bodies() -> None:
    first, last = "1 in1 None 0 scan_input_axes[0]", "None out1 1 0 scan_output_axes[0]"
    axes = "scan_input_axes = [-3], scan_output_axes = [2], body"
    for text, results, opset, expected in (
        (IF, "", 21, ["None out0 out0 0 None", "None out1 out1 1 None"]),
        (IF.replace("= If", "= acme.If"), "", 21, []),
        (IF.replace("y, z = If", ", z = If").replace("float[2,3] y, ", ""), "", 21,
         ["None out0 out0 0 None", "None out1 out1 1 None"]),
        (SCAN.replace("u = Tr", "s = Abs(f) u = Tr").replace("3,4] u", "4,3] s, float[3,4] u"),
         "y, , z", 21, ["0 in0 out0 0 None", first, "None out2 2 0 scan_output_axes[1]"]),
        (SCAN.replace("5,4,3] e", "] e"), "y, z", 21, ["0 in0 out0 0 None", last]),
        (LOOP, "y, z", 21, ["2 in2 out1 0 None", "None out2 1 0"]),
        (LOOP, ", z", 21, ["2 in2 out1 None None", "None out2 1 0"]),
        (LOOP, "y", 21, ["2 in2 out1 0 None"]),
        (SCAN, "y, z", 21, ["0 in0 out0 0 None", first, last]),
        (SCAN, "y, z", 9, ["0 in0 out0 0 None", first, last]),
        (SCAN.replace("(x, e) }", "(, x, e) }"), "y, z", 8, []),
        (SCAN, ", z", 21, ["0 in0 out0 None None", first, last]),
        (SCAN, "y", 21, ["0 in0 out0 0 None", first]),
        (SCAN.replace("body", axes, 1), "y, z", 21,
         ["0 in0 out0 0 None", first, "None out1 1 2 scan_output_axes[0]"]),
    ):  # fmt: skip
        assert tensors(text, results, opset) == expected, (text, results, opset)


def test_an_end_that_is_shared_or_of_another_rank_or_unknown_stays() -> None:
    for text, expected in (
        (LOOP, [True, True]),
        (LOOP.replace("y, z", ", z"), [True, True]),
        (LOOP.replace("float[2,3] x", "float[2,3,1] x"), [False, True]),
        (LOOP.replace("w = Neg(v) u = Transpose(v)", "w = Neg(v) u = Transpose(w)"), [True, True]),
        (LOOP.replace("float[3,2] u)", "float[2,3] w)").replace(" u = Transpose(v)", ""),
         [False, False]),
        (LOOP.replace("float[2,3] w, float[3,2] u)", "float[2,3] v, float[3,2] u)").replace(
            "w = Neg(v) ", ""), [False, True]),
        (LOOP.replace("float[2,3] w, float[3,2] u)", "float[2,3] x, float[3,2] u)").replace(
            "w = Neg(v) ", ""), [False, True]),
    ):  # fmt: skip
        model = text.replace("OUTPUTS", "float[2,3] y, float[N,A,B] z").replace("RESULTS", "y, z")
        found = _body_tensors(Model.from_proto(parse(model)))
        assert [each.can_permute for each in found] == expected, text


def test_the_axes_that_a_scan_walks_along_are_written_where_they_move() -> None:
    text = (
        SCAN.replace("num_scan_inputs = 1", "num_scan_inputs = 2")
        .replace("float[4,3] f)", "float[4,3] f, float[4,3] g)")
        .replace("(x, e) }", "(x, e, e) }")
    )
    text = text.replace("OUTPUTS", "float[2,3] y, float[5,3,4] z").replace("RESULTS", "y, z")
    for at, perm, axis, written in (
        (1, (1, 0), 2, ("scan_input_axes", (2, 0))),
        (2, (0, 1), 1, ("scan_input_axes", (0, 1))),
        (3, (1, 0), 1, ("scan_output_axes", (1,))),
        (1, (1, 0), 0, ("scan_input_axes", None)),
        (0, (1, 0), None, ("scan_input_axes", None)),
    ):
        model = Model.from_proto(parse(text))
        tensor = _body_tensors(model)[at]
        tensor.apply(BodyOrder(perm, axis))
        assert tensor.node.attr(written[0], None) == written[1], at
        model.check_view(types=True)


def test_a_loop_may_lack_its_last_results() -> None:
    text = LOOP.replace("(n, c, x)", "(n, c, x, x)").replace(
        "float[2,3] v)", "float[2,3] v, float[2,3] a)"
    )
    text = text.replace("float[3,2] u) {", "float[2,3] u) {").replace("Transpose(v)", "Abs(a)")
    assert tensors(text, "y") == ["2 in2 out1 0 None", "3 in3 out2 None None"]
    assert tensors(text, "y, z") == ["2 in2 out1 0 None", "3 in3 out2 1 None"]


def test_what_a_body_takes_from_around_it_or_has_no_type_stays() -> None:
    for old, new, expected in (
        ("float[2,3] w, float[3,2] u)", "float[2,3] m, float[3,2] u)", [False, True]),
        ("float[2,3] w, float[3,2] u)", "float[] w, float[3,2] u)", [True, True]),
        ("float[2,3] x,", "float[] x,", [False, True]),
        ("w = Neg(v)", "w = acme.Any(v)", [True, True]),
    ):
        text = LOOP.replace("{ RESULTS", "{ m = Abs(x) RESULTS").replace(old, new)
        text = text.replace("OUTPUTS", "float[2,3] y, float[N,3,2] z").replace("RESULTS", "y, z")
        found = _body_tensors(Model.from_proto(parse(text)))
        assert [each.can_permute for each in found] == expected, new
