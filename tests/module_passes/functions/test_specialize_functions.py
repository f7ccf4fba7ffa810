import onnx
import pytest

from tests.rollback import assert_undone
from tiered import Model, PassContext, get_pass
from tiered.runtime import Session, make_inputs
from tiered.testing import assert_unchanged

PASS = "specialize_functions"
HEADER = '<ir_version: 10, opset_import: ["" : 21, "f" : 1]>\n'
IMPORTS = '<domain: "f", opset_import: ["" : 21, "f" : 1]>\n'
SCALE = IMPORTS + "scale <to> (x, w) => (y) { c = Cast<to: int = @to>(w) y = Mul(x, c) }"
TWO = (
    HEADER
    + "g (float[2] x) => (float[2] y, float[2] z) <float[2] w = {1,2}> {"
    + " a = f.scale<to = 1>(x, w) y = f.scale<to = 1>(a, w) z = f.scale<to = 1>(x, a) }\n"
    + SCALE
)


def specialized(text: str) -> onnx.ModelProto:
    before = onnx.parser.parse_model(text)
    made = assert_undone(PASS, before)
    onnx.checker.check_model(made, full_check=True)
    feeds = make_inputs(before).feeds
    one, other = Session(before).run(feeds), Session(made).run(feeds)
    assert all(one[name].tobytes() == other[name].tobytes() for name in one)
    return made


def test_equal_constants_share_a_function() -> None:
    made = specialized(TWO)
    calls = [(node.op_type, list(node.input), len(node.attribute)) for node in made.graph.node]
    assert calls == [("scale_1", ["x"], 0), ("scale_1", ["a"], 0), ("scale_2", ["x", "a"], 0)]
    first, second = made.functions
    assert [node.op_type for node in first.node] == ["Constant", "Cast", "Mul"]
    assert (list(first.input), list(first.attribute)) == (["x"], [])
    assert [each.i for each in second.node[0].attribute] == [1]


def test_constants_go_down_the_calls() -> None:
    outer = (
        IMPORTS
        + "outer <to, alpha: float = 0.5> (x, w) => (y) { a = f.scale<to: int = @to>(x, w) y = LeakyRelu<alpha: float = @alpha>(a) }"
    )
    text = TWO.replace("scale<to = 1>", "outer<to = 1>") + "\n" + outer
    made = specialized(text)
    assert sorted(each.name for each in made.functions) == [
        "outer_1",
        "outer_2",
        "scale_1",
        "scale_2",
    ]
    (first,) = (each for each in made.functions if each.name == "outer_1")
    assert [node.op_type for node in first.node] == ["Constant", "scale_1", "LeakyRelu"]
    # The default of an attribute that no call gives stays.
    assert [each.name for each in first.attribute_proto] == ["alpha"]


def test_references_in_bodies_are_bound() -> None:
    text = HEADER + (
        "g (float[2] x, bool c) => (float[2] y) { y = f.pick<axis = 0>(x, c) }\n"
        '<domain: "f", opset_import: ["" : 21]> pick <axis> (x, c) => (y) {'
        " y = If(c) <then_branch = t () => (p) { p = Softmax<axis: int = @axis>(x) },"
        " else_branch = e () => (q) { q = Neg(x) }> }"
    )
    made = specialized(text)
    assert "@" not in onnx.printer.to_text(made.functions[0])


def test_a_loop_in_a_function_gets_its_count() -> None:
    text = HEADER + (
        "g (float[2] x) => (float[2] y) <int64 n = {2}> { y = f.again(n, x) }\n"
        '<domain: "f", opset_import: ["" : 21]> again (n, x) => (y) { t = Constant<value = bool {1}>()'
        " y = Loop(n, t, x) <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] r) {"
        " d = Identity(c) r = Exp(s) }> }"
    )
    model = Model.from_proto(specialized(text))
    get_pass("partial_evaluate", max_iterations=2).apply(model, PassContext.isolated())
    assert [node.op_type for node in model.functions[0].nodes].count("Exp") == 2


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (
            HEADER + "g (float[2] x, float[2] w) => (float[2] y) { y = f.two(x, w) }\n"
            + IMPORTS + "two (x, w) => (y) { y = Add(x, w) }",
            "no attribute or operand is constant",
        ),
        (
            # A default may be replaced by callers.
            HEADER + "g (float[2] x, float[2] w = {1,2}) => (float[2] y) { y = f.two(x, w) }\n"
            + IMPORTS + "two (x, w) => (y) { y = Add(x, w) }",
            "no attribute or operand is constant",
        ),
    ],
)  # fmt: skip
def test_calls_that_stay(text: str, because: str) -> None:
    assert_unchanged(PASS, onnx.parser.parse_model(text), because=because)


def test_marked_functions_stay() -> None:
    proto = onnx.parser.parse_model(TWO)
    proto.functions[0].metadata_props.add(key="tiered.compiler", value="npu")
    assert_unchanged(PASS, proto, because="the call or its function is marked")


def test_a_large_constant_stays_an_operand() -> None:
    wide = TWO.replace("[2]", "[257]").replace("{1,2}", "{" + ",".join(["1"] * 257) + "}")
    made = specialized(wide)
    assert [len(node.input) for node in made.graph.node] == [2, 2, 2]


def test_the_number_of_functions_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tiered.rewriter.idioms.functions.specialization.MOST", 0)
    proto = onnx.parser.parse_model(TWO)
    assert_unchanged(PASS, proto, because="0 functions were made, more are not")
