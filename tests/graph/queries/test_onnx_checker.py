"""What onnx.checker says of a model without its weights, and which complaints do not count."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tests.small import made_by, model as small, named, parsed
from tiered.graph import Model, Tensor
from tiered.graph.queries.onnx_checker import (
    check_model,
    current_complaint,
    early_nodes,
    is_only_declared,
    without_false_errors,
    wrong_declarations,
)
from tiered.support.errors import ModelError
from tiered.testing import parse

VALID = "(float[2,3] x) => (float[2,3] y) { a = Relu(x)  y = Neg(a) }"


def declaring(name: str, dims: list[Any], *, dtype: int = 1, text: str = VALID) -> Model:
    proto = parse(text)
    proto.graph.value_info.append(onnx.helper.make_tensor_value_info(name, dtype, dims))
    return Model.from_proto(proto)


def test_a_valid_model_has_no_complaint() -> None:
    model = parsed(VALID)
    assert current_complaint(model) is None
    assert without_false_errors(model) is not None
    assert is_only_declared(model)
    assert wrong_declarations(model) == {}
    check_model(model)
    assert model.notes == []


def test_what_an_edit_breaks_is_an_error_and_what_was_loaded_a_note() -> None:
    model = parsed(VALID)
    model.main.add_node("Relu", (named(model, "x"),), attributes={"odd": 1})
    with pytest.raises(ModelError, match=r"onnx\.checker rejects the result: .*odd"):
        check_model(model)
    loaded = Model.from_proto(model.to_proto())
    check_model(loaded)
    (note,) = loaded.notes
    assert note.startswith("onnx.checker rejects the model as it was loaded: ")
    assert "odd" in note


@pytest.mark.parametrize(
    ("dims", "dtype", "is_wrong"),
    [([2, 4], 1, True), ([2], 1, True), ([2, 3], 1, False), (["N", 3], 1, False)],
)
def test_inner_declarations_may_be_all_that_is_wrong(
    dims: list[Any], dtype: int, is_wrong: bool
) -> None:
    model = declaring("a", dims, dtype=dtype)
    assert (current_complaint(model) is not None) is is_wrong
    assert is_only_declared(model)
    found = wrong_declarations(model)
    assert list(found) == (["a"] if is_wrong else [])
    if is_wrong:
        kind = model.main.declarations[0][1]
        shape = ",".join(str(dim.dim_value) for dim in kind.type.tensor_type.shape.dim)
        assert found["a"] == f"'a' is declared float[{shape}], and computed as float[2,3]"
        assert without_false_errors(model) is None


def test_outputs_may_be_ignored_too() -> None:
    model = parsed(VALID.replace("(float[2,3] y)", "(float[2,4] y)"))
    assert not is_only_declared(model)
    assert is_only_declared(model, ["y"])
    assert not is_only_declared(model, ["z"])
    assert list(wrong_declarations(model)) == ["y"]


def test_another_fault_than_declarations_is_one() -> None:
    model = declaring("a", [2, 4])
    model.main.add_node("Relu", (named(model, "x"),), attributes={"odd": 1})
    assert not is_only_declared(model)
    assert not is_only_declared(model, ["y"])


def test_large_weights_are_not_looked_at() -> None:
    model = parsed("(float[2] x) => (float[2] y) { y = Neg(x) }")
    model.main.add_constant(Tensor.of(np.zeros((1025,), np.float32)), "w")
    assert current_complaint(model) is None


def test_negative_dims_do_not_end_the_process() -> None:
    model = declaring("a", [-2, 3])
    assert current_complaint(model) is None
    proto = parse(VALID)
    proto.graph.output[0].type.tensor_type.shape.dim[0].dim_value = -1
    assert current_complaint(Model.from_proto(proto)) is None


def test_nodes_after_an_unknown_operator_are_checked_too() -> None:
    text = """(float[2,3] x) => (float[2,3] y) {
        u = com.microsoft.Odd(x)  y = Relu(u)  m = MatMul(x, x) }"""
    proto = parse(text)
    proto.graph.value_info.append(onnx.helper.make_tensor_value_info("u", 1, [2, 3]))
    found = current_complaint(Model.from_proto(proto))
    assert found is not None
    assert "MatMul" in found
    fine = parse(text.replace("MatMul(x, x)", "Mul(x, x)"))
    assert current_complaint(Model.from_proto(fine)) is None


def test_operators_of_later_opsets_are_early() -> None:
    assert early_nodes(small("g (float[2,3] x) => (float[2,3] y) { y = Relu(x) }")) == []
    text = "(float[2,3] x, float[3] s) => (float[2,3] y) { y = LayerNormalization(x, s) }"
    loaded = Model.from_proto(parse(text, opset=16))
    assert [node.op_type for node in early_nodes(loaded)] == ["LayerNormalization"]
    assert current_complaint(loaded) is not None
    assert current_complaint(loaded, early=True) is None
    assert early_nodes(Model.from_proto(parse(text, opset=17))) == []


def test_an_early_operator_does_not_hide_another_fault() -> None:
    text = """(float[2,3] x, float[3] s) => (float[2,3] y) {
        y = LayerNormalization(x, s)  m = MatMul(x, x) }"""
    loaded = Model.from_proto(parse(text, opset=16))
    found = current_complaint(loaded, early=True)
    assert found is not None
    assert "MatMul" in found


def test_local_functions_and_bodies_are_checked() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "f" : 1]>
        g (float[2,3] x, bool c) => (float[2,3] y) {
        u = f.F(x)
        y = If(c) <then_branch = t () => (float[2,3] p) { p = Neg(u) },
                   else_branch = e () => (float[2,3] q) { q = Abs(x) }> }
        <domain: "f", opset_import: ["" : 21]> F (v) => (w) { w = Relu(v) }"""
    model = Model.from_proto(onnx.parser.parse_model(text))
    assert current_complaint(model) is None
    body = made_by(model, "y").bodies[0]
    body.add_node("Relu", (named(model, "x"),), attributes={"odd": 1})
    assert current_complaint(model) is not None


POOL = """(float[1,1,4] x, float[2,3] m) => (float[1,1,1] y, float[1,1,1] z) {{
    y = MaxPool<ceil_mode=1, kernel_shape=[1], strides=[5]>(x)  z = Neg(y)  o = {} }}"""


def test_what_onnx_infers_wrongly_is_no_complaint_but_what_is_wrong_besides() -> None:
    for other, expected in (
        ("Neg(m)", None),
        ("MatMul(m, m)", "MatMul"),
        ("Relu<odd=1>(m)", "odd"),
    ):
        found = current_complaint(Model.from_proto(parse(POOL.format(other))))
        assert (found is None) is (expected is None), other
        assert expected is None or (found is not None and expected in found)


def test_what_each_part_of_a_model_may_hide() -> None:
    for text, early, expected in (
        ("y = f.F(x)", False, "MatMul"), ("h = f.G(x)  y = Neg<odd=1>(h)", False, "odd"),
        ("y = ai.onnx.ml.Binarizer<odd=1>(x)", False, "odd"), ("y = own.Any<odd=1>(x)", False, None),
        ("y = LayerNormalization(x, s)", True, None), ("y = LayerNormalization(x, s)", False, "No Op"),
        ("h = LayerNormalization(x, s)  y = Relu<odd=1>(h)", True, "odd"),
        ("y = own.LayerNormalization<odd=1>(x, s)", True, None), ("y = f.L(x)", True, None),
        ("""y = If(c) <then_branch = t () => (float[2,3] p) { p = LayerNormalization(x, s) },
            else_branch = e () => (float[2,3] q) { q = own.LayerNormalization(x, s) }>""", True, None),
        ("""y = If(c) <then_branch = t () => (float[2,3] p) { p = LayerNormalization(x, s) },
            else_branch = e () => (float[2,3] q) { q = Abs(x) }>""", False, "LayerNormalization"),
        ("""y = own.Any(c) <body = t () => (float[2,3] p) { p = Relu<odd=1>(x) }>""", False, "odd"),
    ):  # fmt: skip
        early_one = "LayerNormalization" if "f.L" in text else "Mul"
        proto = parse(
            f"""<ir_version: 8, opset_import: ["" : 16, "f" : 1, "own" : 1, "ai.onnx.ml" : 3]>
            g (float[2,3] x, float[3] s, bool c) => (float[2,3] y) {{ {text} }}
            <domain: "f", opset_import: ["" : 16]> F (v) => (w) {{ w = MatMul(v, v) }}
            <domain: "f", opset_import: ["" : 16]> G (v) => (w) {{ w = Relu(v) }}
            <domain: "f", opset_import: ["" : 16]> L (v) => (w) {{ w = {early_one}(v, v) }}"""
        )
        found = current_complaint(Model.from_proto(proto), early=early)
        assert (found is None) is (expected is None), (text, found)
        assert expected is None or (found is not None and expected in found), (text, found)


def test_false_errors_are_of_the_whole_and_not_of_a_node() -> None:
    for text in ("y = MatMul(x, x)", "y = Relu<odd=1>(x)"):
        assert (
            without_false_errors(parsed(f"(float[2,3] x) => (float[2,3] y) {{ {text} }}")) is None
        )


def test_only_tensors_that_nodes_compute_are_compared_with_their_declarations() -> None:
    text = """(float[2,3] x) => (float[2,3] y) <float[3] w = {1,2,3}> {
        a = Add(x, w)  s = SequenceConstruct(x, x)  y = Neg(a) }"""
    assert wrong_declarations(declaring("w", [9], text=text)) == {}
    assert wrong_declarations(declaring("s", [9], text=text)) == {}
    proto = parse(text)
    sequence = onnx.helper.make_tensor_sequence_value_info("a", 1, [2, 3])
    proto.graph.value_info.append(sequence)
    assert wrong_declarations(Model.from_proto(proto)) == {}
    assert list(wrong_declarations(declaring("a", [0, 3], text=text))) == ["a"]
    assert current_complaint(declaring("a", [0, 3], text=text)) is not None


def test_numbers_that_were_not_read_are_left_out(tmp_path: Path) -> None:
    text = """(float[2] x) => (float[2] y) {{ k = Constant<value=float[2] {{1,2}}>()
        o = ConstantOfShape<value=float[1] {{3}}>(n)  n = Constant<value_ints=[2]>()
        t = Add(k, o)  y = {} }}"""
    for call, is_fault in (("Add(x, t)", False), ("MatMul(x, w)", True)):
        proto = parse(
            text.format(call).replace(
                "{ k =", "{ w = Constant<value=float[3,2] {1,2,3,4,5,6}>() k ="
            )
        )
        model = Model.from_proto(proto)
        for node in model.main.nodes_of("Constant"):
            tensor = node.constant_tensor()
            if tensor is not None and node.has_attr("value"):
                stored = Tensor.of(tensor.numpy().copy(), in_memory=0)
                model.main.set_attribute(node, "value", stored)
        model.has_stored_constants = True
        assert (current_complaint(model) is not None) is is_fault
