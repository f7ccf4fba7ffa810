"""A finding as text: a model for a test, and the skeleton of a pass."""

import re

import numpy as np
import onnx
import pytest

from tests.extensions.discovery.making import Maker
from tests.extensions.discovery.test_mining import _mined
from tiered.extensions.discovery.skeleton import model_text, pass_text, proof_text
from tiered.graph import Model
from tiered.support.errors import ModelError
from tiered.testing import parse


def test_a_finding_is_a_pass_and_its_test() -> None:
    _, mined = _mined()
    first = mined.findings[0]
    texts = [model_text(each, first.source) for each in (first.source, first.target)]
    for text in texts:
        onnx.checker.check_model(parse(text))
    code = pass_text("fuse_tile", first.law, *texts)
    scope: dict[str, object] = {}
    exec(compile(code, "fuse_tile.py", "exec"), scope)
    made = scope["fuse_tile"]
    model = Model.from_proto(parse(texts[0]))
    made(model)  # type: ignore[operator]  # it is a pass
    assert [node.op_type for node in model.main.nodes] == ["Gather"]
    assert texts[1] in proof_text("fuse_tile", *texts)


def test_a_text_that_is_no_model_is_an_error() -> None:
    with pytest.raises(ModelError, match="no model"):
        pass_text("f", "law", "nothing", "nothing")


def test_a_model_has_the_borders_of_the_whole_as_inputs() -> None:
    make = Maker()
    y = make.meaning.table.border("z", 1, ())
    whole = make.meaning.applied("Add", [make("Relu", make.x), y], ())[0]
    assert model_text(whole, whole) == (
        "(float[2,3] x, float z) => (float[2,3] y) { h0 = Relu(x)  y = Add(h0, z) }"
    )
    assert model_text(make.x, whole) == (
        "(float[2,3] x, float z) => (float[2,3] y) { y = Identity(x) }"
    )


def test_constants_attributes_and_results_are_written() -> None:
    make = Maker()
    text = model_text(each := make("Clip", make.x, -0.0, float("inf")), each)
    assert "<float c0 = {-0.0}, float c1 = {inf}>" in text
    model = parse(text)
    onnx.checker.check_model(model)
    held = [onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer]
    assert np.signbit(held[0])
    assert np.isinf(held[1])
    moved = make("Transpose", make.x, perm=[1, 0])
    assert "y = Transpose <perm = [1, 0]>(x)" in model_text(moved, moved)
    parts = make.meaning.applied("Split", [make.x], (("axis", 1), ("num_outputs", 3)), 3)
    text = model_text(parts[1], parts[1])
    assert "y_0, y, y_2 = Split <axis = 1, num_outputs = 3>(x)" in text
    onnx.checker.check_model(parse(text))


def code(before: str, after: str) -> str:
    return pass_text("f", "a  =>  b", before, after)


BEFORE = "(float[2] x) => (float[2] y) <float[2] c = {%s}> { a = Add(x, c)  y = Relu(a) }"
AFTER = "(float[2] x) => (float[2] y) { y = Relu(x) }"


def compiled(text: str) -> object:
    scope: dict[str, object] = {}
    exec(compile(text, "f.py", "exec"), scope)
    return scope["f"]


@pytest.mark.parametrize(
    ("numbers", "others"),
    [
        ("0.0, 1", ["-0.0, 1", "0.0, 2"]),
        ("inf, nan", ["nan, inf", "0, nan"]),
        ("-inf, 1", ["inf, 1"]),
    ],
)
def test_a_pass_fires_on_the_bits_of_its_constants_alone(numbers: str, others: list[str]) -> None:
    made = compiled(code(BEFORE % numbers, AFTER))
    for each, kinds in ((numbers, ["Relu"]), *((other, ["Add", "Relu"]) for other in others)):
        model = Model.from_proto(parse(BEFORE % each))
        made(model)  # type: ignore[operator]  # it is a pass
        assert [node.op_type for node in model.main.nodes] == kinds


def test_a_constant_of_another_shape_is_another_one() -> None:
    made = compiled(code(BEFORE % "1, 2", AFTER))
    model = Model.from_proto(parse(BEFORE.replace("float[2] c", "float[1,2] c").replace(
        "=> (float[2]", "=> (float[1,2]") % "1, 2"))  # fmt: skip
    made(model)  # type: ignore[operator]  # it is a pass
    assert [node.op_type for node in model.main.nodes] == ["Add", "Relu"]


def test_what_a_pass_needs_is_imported_and_nothing_else() -> None:
    plain = code("(float[2] x) => (float[2] y) { a = Neg(x)  y = Neg(a) }",
                 "(float[2] x) => (float[2] y) { y = Identity(x) }")  # fmt: skip
    assert plain.startswith('"""a  =>  b"""\n\nfrom tiered import Graph, Value, op, rewrite, var\n')
    assert "-> Value:" in plain
    assert "return x\n" in plain
    guarded = code(BEFORE % "1, 2", AFTER)
    needed = "import numpy as np\n\nfrom tiered import Constant, Graph, Skip, Value, const, "
    assert needed in guarded
    assert "-> Value | Skip:" in guarded
    assert 'const(name="c")' in guarded


def test_constants_that_both_sides_have_are_values_of_the_match() -> None:
    after = "(float[2] x) => (float[2] y) <float[2] k = {1, 2}, float[2] n = {3, 4}> {" \
        " a = Mul(x, k)  y = Add(a, n) }"  # fmt: skip
    text = code(BEFORE % "1, 2", after)
    assert "graph.op.Add(graph.op.Mul(x, c), np.array([3.0, 4.0], np.float32))" in text


def test_attributes_are_part_of_the_pattern() -> None:
    before = "(float[2,3] x) => (float[3,2] y) { a = Softmax<axis=0>(x)" \
        "  y = Transpose<perm=[1,0]>(a) }"  # fmt: skip
    text = code(before, "(float[2,3] x) => (float[3,2] y) { y = Transpose<perm=[1,0]>(x) }")
    assert re.search(r"op\.Transpose\(op\.Softmax\(var\.x, axis=0\), perm=\[1, 0\]\)", text)


def test_the_test_of_a_pass_has_both_models() -> None:
    text = proof_text("fuse_x", "before", "after")
    assert "assert_rewrites(\n        \"fuse_x\",\n        'before',\n        'after',\n" in text
    compile(text, "t.py", "exec")


def test_texts_of_graphs() -> None:
    make = Maker()
    table = make.meaning.table
    clip = table.apply("Clip", [make.x, None, make.constant(2.0)], kind=(1, (2, 3)))
    flags = table.constant(np.array([True, False]))
    for expr, expected in (
        (make("Gelu", make("Clip", make.x, 1.0), approximate="tanh"),
         "(float[2,3] x) => (float[2,3] y) <float c0 = {1.0}>"
         ' { h0 = Clip(x, c0)  y = Gelu <approximate = "tanh">(h0) }'),
        (table.apply("Gelu", [clip], kind=(1, (2, 3)), domain="com.microsoft"),
         "(float[2,3] x) => (float[2,3] y) <float c0 = {2.0}>"
         " { h0 = Clip(x, , c0)  y = com.microsoft.Gelu(h0) }"),
        (make.meaning.applied("Not", [flags], ())[0],
         "() => (bool[2] y) <bool[2] c0 = {1, 0}> { y = Not(c0) }"),
    ):  # fmt: skip
        assert model_text(expr, expr) == expected


PASS = '''"""law"""

import numpy as np

from tiered import Constant, Graph, Skip, Value, const, op, rewrite, var


@rewrite(op.Transpose(op.Gelu(op.Clip(var.x, None, const(name="m")), approximate='tanh'), \
perm=[1, 0]), opt_level=None)
def fuse_it(graph: Graph, x: Value, t: Value, m: Constant, n: Constant) -> Value | Skip:
    """Describe in a sentence why both compute the same, and widen the guards."""
    same = np.array(2.0, np.float32)
    if m.const.shape != same.shape or m.const.tobytes() != same.tobytes():
        return Skip("constant m is another one")
    same = np.array([3.0, 4.0], np.float32)
    if n.const.shape != same.shape or n.const.tobytes() != same.tobytes():
        return Skip("constant n is another one")
    return graph.op.Add(graph.op.Clip(graph.op.Transpose(x, perm=[1, 0]), None, m), \
np.array([3.0, np.inf], np.float32))
'''


def test_a_pass_as_a_whole() -> None:
    before = """(float[2,3] x, bool[2] t) => (float[3,2] y) <float m = {2}, float[2] n = {3, 4}> {
        a = Clip(x, , m)  b = Gelu<approximate="tanh">(a)  y = Transpose<perm=[1,0]>(b) }"""
    after = """(float[2,3] x, bool[2] t) => (float[3,2] y) <float q = {2}, float[2] r = {3, inf}> {
        a = Identity(x)  b = Transpose<perm=[1,0]>(a)  c = Clip(b, , q)  y = Add(c, r) }"""
    assert pass_text("fuse_it", "law", before, after) == PASS
