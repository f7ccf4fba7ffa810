"""Constraints are found behind the operators that pass values on, and in bodies."""

import pytest

from tests.runtime.inputs.facts_of import facts_of

OUT = "=> (float y)"


def kinds(text: str, name: str = "i", *, is_float: bool = False) -> list[str]:
    return [each.kind for each in facts_of(text, name, is_float=is_float)]


@pytest.mark.parametrize(
    "nodes",
    [
        "c = Cast<to = 7>(i)",
        "a = Unsqueeze(i, e)  c = Squeeze(a, e)",
        "c = Concat<axis = 0>(e, i)",
        "c = Where(t, e, i)",
        "c = ScatterElements(e, z, i)",
        "c = Max(e, i)",
    ],
)
def test_operators_that_pass_values_on_are_followed(nodes: str) -> None:
    text = f"""(float[5,3] x, int64[1] i) {OUT} <int64[1] e = {{0}}, int64[1] z = {{0}},
        bool[1] t = {{1}}> {{ {nodes}  y = Gather(x, c) }}"""
    assert "index" in kinds(text)


@pytest.mark.parametrize(
    "nodes",
    [
        "c = Gather(e, i)",
        "s = Shape(i)  c = Reshape(e, s)",
        "c = ScatterElements(e, i, e)",
        "h = vendor.Any(i)  c = Cast<to = 7>(h)",
    ],
)
def test_others_end_the_way(nodes: str) -> None:
    text = f"""<ir_version: 10, opset_import: ["" : 21, "vendor" : 1]> g
        (float[5,3] x, int64[1] i) {OUT} <int64[1] e = {{0}}> {{ {nodes}  y = Gather(x, c) }}"""
    assert not any(each.high == 5 for each in facts_of(text))


def test_a_float_that_meets_another_is_data() -> None:
    text = f"(float[2] i, float[2] k) {OUT} {{ c = Mul(i, k)  y = Log(c) }}"
    assert kinds(text, is_float=True) == ["factor"]
    assert "domain" in kinds(text)


def test_a_comparison_makes_a_mask_of_what_follows() -> None:
    text = f"""(float[2] x, int64[2] i) {OUT} <int64 k = {{3}}> {{
        c = Less(i, k)  y = Where(c, x, x) }}"""
    assert kinds(text) == ["mask"]
    assert kinds(f"(float[2] x, bool[2] i) {OUT} {{ y = Where(i, x, x) }}") == ["chooser"]


def test_nothing_is_known_of_an_input_that_is_not_there() -> None:
    assert kinds(f"(float[2] x) {OUT} {{ y = Neg(x) }}", "other") == []


def test_one_minus_a_value_is_a_mask() -> None:
    text = f"(float[2] i) {OUT} <float one = {{1}}> {{ y = Sub(one, i) }}"
    assert kinds(text) == ["mask"]
    assert kinds(text.replace("{1}", "{2}")) == []
    assert kinds(f"(float[2] i) {OUT} <float one = {{1}}> {{ y = Sub(i, one) }}") == []


def test_bodies_are_followed_from_captured_values_and_operands() -> None:
    inside = f"""(float[5,3] x, int64[1] i, bool p) {OUT} {{
        y = If(p) <then_branch = t () => (float u) {{ u = Gather(x, i) }},
                   else_branch = e () => (float v) {{ v = Identity(x) }}> }}"""
    assert kinds(inside) == ["index"]
    assert kinds(inside, "p") == ["condition"]
    loop = f"""(float[5,3] x, int64[1] i) {OUT} <int64 n = {{2}}> {{
        s = Loop(n, , i) <body = b (int64 at, bool on, int64[1] v) => (bool go, int64[1] w) {{
            go = Identity(on)  w = Identity(v) }}>
        y = Gather(x, s) }}"""
    assert "index" in kinds(loop)


def test_a_result_of_a_loop_enters_the_next_iteration() -> None:
    text = f"""(float[5,3] x, int64[1] i) {OUT} <int64 n = {{2}}, int64[1] e = {{0}}> {{
        s = Loop(n, , e) <body = b (int64 at, bool on, int64[1] v) => (bool go, int64[1] w) {{
            go = Identity(on)  g = Gather(x, v)  w = Identity(i) }}>
        y = Cast<to = 1>(s) }}"""
    assert kinds(text) == ["index"]


def test_only_so_many_values_are_visited(monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"""(float[5,3] x, int64[1] i) {OUT} {{
        a = Identity(i)  b = Identity(a)  y = Gather(x, b) }}"""
    for most, expected in ((3, ["index"]), (2, [])):
        monkeypatch.setattr("tiered.runtime.inputs.constraints._MAX_STEPS", most)
        assert kinds(text) == expected


@pytest.mark.parametrize(
    ("nodes", "low", "high"),
    [
        ("c = Add(i, one)", -1, 4), ("c = Add(one, i)", -1, 4), ("c = Sub(i, one)", 1, 6),
        ("c = Sub(one, i)", -3, 2), ("c = Mul(i, two)", 0, 3), ("c = Mul(two, i)", 0, 3),
        ("c = Neg(i)", -4, 1), ("a = Mul(i, two)  c = Sub(a, one)", 1, 3),
        ("a = Add(i, one)  c = Mul(a, two)", -1, 2), ("a = Add(i, one)  c = Neg(a)", -5, 0),
        ("a = Add(i, one)  c = Sub(two, a)", -3, 2), ("a = Sub(i, two)  c = Add(a, one)", 1, 6),
        ("c = Add(i, pair)", 0, 2), ("c = Mul(i, i)", 0, 2), ("c = Sum(i)", 0, 5),
        ("a = Cast<to = 16>(i)  b = Mul(a, odd)  c = Cast<to = 7>(b)", 0, 2),
    ],
)  # fmt: skip
def test_numbers_that_arithmetic_changes_are_those_of_the_input(
    nodes: str, low: int, high: int
) -> None:
    text = f"""(float[5,3] x, int64[1] i) {OUT} <int64 one = {{1}}, int64[1] two = {{2}},
        int64[2] pair = {{0,1}}, bfloat16 odd = {{16384}}> {{ {nodes}  y = Gather(x, c) }}"""
    found = {(fact.low, fact.high) for fact in facts_of(text) if fact.kind == "index"}
    assert found == {(low, high)}


def test_a_result_that_a_loop_does_not_return_ends_the_way() -> None:
    text = f"""(float[5,3] x, int64[1] i) {OUT} <int64 n = {{2}}, int64[1] e = {{0}}> {{
        s = Loop(n, , e) <body = b (int64 at, bool on, int64[1] v)
            => (bool go, int64[1] w, int64[1] z) {{
                go = Identity(on)  w = Identity(v)  z = Identity(i) }}>
        y = Gather(x, s) }}"""
    assert kinds(text) == []


def test_conditions_of_loops_and_states_of_scans_are_not_the_next_input_of_the_body() -> None:
    loop = f"""(float[2] x, bool i) {OUT} <int64 n = {{2}}, bool e = {{0}}> {{
        s = Loop(n, , e) <body = b (int64 at, bool on, bool v) => (bool go, bool w) {{
            go = Identity(i)  q = Not(on)  w = Identity(v) }}>
        y = Where(s, x, x) }}"""
    scan = f"""(float[5,3] x, int64[1] i, int64[2,1] p) {OUT} <int64[1] e = {{0}}> {{
        y, s = Scan<num_scan_inputs = 1, body = b (int64[1] u, int64[1] v)
            => (int64[1] t, float[1,3] g) {{ t = Identity(i)  g = Gather(x, v) }}>(e, p) }}"""
    assert [kinds(loop), kinds(scan), kinds(scan, "p")] == [[], [], ["index"]]


def test_facts_are_in_the_order_of_the_visit_and_of_the_input_itself() -> None:
    direct = f"(float[2] x, int64[1] i) {OUT} {{ y = Tile(x, i) }}"
    assert [fact.values for fact in facts_of(direct)] == [(2,)]
    behind = f"(float[2] x, int64[1] i) {OUT} {{ c = Identity(i)  y = Tile(x, c) }}"
    assert [(fact.kind, fact.values) for fact in facts_of(behind)] == [("size", ())]
    inside = f"""(float[5,3] x, int64[1] i, bool p) {OUT} {{
        y = If(p) <then_branch = t () => (float u) {{ u = Gather(x, i) }},
                   else_branch = e () => (float v) {{ v = Tile(x, i) }}>
        z = Range(i, i, i) }}"""
    assert [fact.why for fact in facts_of(inside)] == [
        "Range start", "Range limit", "Range step", "Gather index", "Tile repeat",
    ]  # fmt: skip


def test_an_operator_of_another_domain_with_a_known_name_ends_the_way() -> None:
    text = f"""<ir_version: 10, opset_import: ["" : 21, "vendor" : 1]> g
        (float[5,3] x, int64[1] i) {OUT} {{ c = vendor.Identity(i)  y = Gather(x, c) }}"""
    assert kinds(text) == []
