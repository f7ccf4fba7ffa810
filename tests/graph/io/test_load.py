"""Invalid files, and the errors that name the cause."""

import re
from pathlib import Path

import onnx
import pytest
from onnx import parser

from tests.small import HEADER, proto
from tiered import Model, ModelError, optimize
from tiered.graph.edits.replace import replace_uses
from tiered.support.errors import PreconditionError

FOREIGN = (
    '<ir_version: 10, opset_import: ["vendor" : 1]> g (float[2] x, float[2] z) => (float[2] y)'
    " { y = vendor.F(x) }"
)


@pytest.mark.parametrize(
    ("dtype", "dims", "words"),
    [
        (999, [2], "unknown data_type: 999"),
        (0, [2], "unknown data_type: 0"),
        (1, [-1, 3], "negative dims"),
        (1, [1 << 40, 1 << 40], "impossible dims"),
    ],
)
def test_a_tensor_that_cannot_be_is_named(dtype: int, dims: list[int], words: str) -> None:
    tensor = onnx.TensorProto(name="w", data_type=dtype, dims=dims)
    made = proto()
    made.graph.initializer.append(tensor)
    with pytest.raises(ModelError, match=f"'w'.*{words}"):
        Model.from_proto(made)
    made = proto(
        "g (float[2] x) => (float[2] y) { w = Constant<value = float {1}>() y = Add(x, w) }"
    )
    made.graph.node[0].attribute[0].t.CopyFrom(tensor)
    with pytest.raises(ModelError, match=f"node_w.*{words}"):
        Model.from_proto(made)


def test_an_error_names_the_file_once(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    for text in ("y = Relu(nowhere)", "y = local.f(x)"):
        function = '<domain: "local", opset_import: ["local": 1]> f (a) => (b) { b = local.f(a) }'
        header = HEADER.replace("]", ', "local" : 1]')
        made = onnx.parser.parse_model(
            f"{header} g (float[2] x) => (float[2] y) {{ {text} }} {function}"
        )
        path.write_bytes(made.SerializeToString())
        with pytest.raises(ModelError) as caught:
            Model.load(path)
        assert str(caught.value).count(str(path)) == 1


def test_a_model_of_foreign_operators_imports_the_standard_ones_when_it_gets_some() -> None:
    model = Model.from_proto(onnx.parser.parse_model(FOREIGN))
    mark = model.mark()
    y, x = model.main.outputs[0], model.main.inputs[0]
    replace_uses(model.main, y, x)
    made = model.to_proto()
    assert {entry.domain: entry.version for entry in made.opset_import} == {"vendor": 1, "": 22}
    onnx.checker.check_model(made)
    model.undo_to(mark)
    assert [entry.domain for entry in model.to_proto().opset_import] == ["vendor"]


def test_a_split_has_no_more_parts_than_it_says() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21]>
        g (float[4] x) => (float[2] a) { a, b, c = Split<axis=0, num_outputs=2>(x) }"""
    with pytest.raises(ModelError, match="more outputs than its num_outputs"):
        Model.from_proto(parser.parse_model(text))


@pytest.mark.parametrize("parts", [1, 2])
def test_how_many_parts_a_split_has_may_be_for_a_call_to_say(parts: int) -> None:
    made = parser.parse_model(
        f"""<ir_version: 10, opset_import: ["" : 21, "local" : 1]>
        g (float[4] x) => (float[a] y, float[b] z) {{ y, z = local.f<n={parts}>(x) }}
        <domain: "local", opset_import: ["" : 21]>
        f <n> (x) => (y, z) {{ y, z = Split<num_outputs: int = @n>(x) }}"""
    )
    kept = optimize(made, disabled=["inline"])
    assert [node.op_type for node in kept.functions[0].node] == ["Split"]
    if parts == 2:
        assert [node.op_type for node in optimize(made).graph.node] == ["Split"]
    else:
        with pytest.raises(ModelError, match="more outputs than its num_outputs"):
            optimize(made)


MALFORMED = [
    "a..b", "....ij->ij", "....", "a.b", "a...b...->ab", "i.j->ij", "ij->i..j", "ij->....",
    "ij-", "ij>", "i-j->ij", "ij-->ij", "ij->ij->", "i1->i", "i;j",
]  # fmt: skip


def einsum(equation: str) -> onnx.ModelProto:
    """Return a model of one Einsum; the parser takes no dots that onnx would not end with."""
    model = parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[2,2] x) => (float y) { y = Einsum<equation="ij->ij">(x) }"""
    )
    model.graph.node[0].attribute[0].s = equation.encode()
    return model


@pytest.mark.parametrize("equation", MALFORMED)
def test_an_equation_that_onnx_does_not_end_with_is_an_error(equation: str) -> None:
    match = re.escape(f"(Einsum) has a malformed equation {equation!r}")
    with pytest.raises(ModelError, match=match):
        Model.from_proto(einsum(equation))


@pytest.mark.parametrize(
    "equation", ["...", "...->...", " i j -> j i ", "i...j->j...i", "ij", "iJ->", "->"]
)
def test_equations_with_ellipses_are_read(equation: str) -> None:
    assert Model.from_proto(einsum(equation)).to_proto() == einsum(equation)


def test_an_equation_may_be_for_a_call_to_say() -> None:
    made = parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 21, "local" : 1]>
        g (float[2,2] x) => (float[2,2] y) { y = local.f<e="ij->ji">(x) }
        <domain: "local", opset_import: ["" : 21]>
        f <e> (x) => (y) { y = Einsum<equation: string = @e>(x) }"""
    )
    assert [node.op_type for node in optimize(made, disabled=["inline"]).functions[0].node] == [
        "Einsum"
    ]
    made.graph.node[0].attribute[0].s = b"a..b"
    Model.from_proto(made).set_input_shapes({"x": [2, 2]})
    with pytest.raises(ModelError, match="malformed equation"):
        optimize(made)


def test_the_tensor_of_a_constant_may_be_for_a_call_to_say() -> None:
    made = parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 21, "local" : 1]>
        g (float[2] x) => (float[2] y) { y = local.f<v = float[2] {1,2}>(x) }
        <domain: "local", opset_import: ["" : 21]>
        f <v> (x) => (y) { c = Constant<value: tensor = @v>() y = Add(x, c) }"""
    )
    (constant,) = Model.from_proto(made).functions[0].nodes_of("Constant")
    assert constant.constant_tensor() is None
    result = optimize(made)
    assert [node.op_type for node in result.graph.node] == ["Add"]
    assert [list(tensor.dims) for tensor in result.graph.initializer] == [[2]]


def test_an_operator_that_is_no_text_is_named() -> None:
    made = proto("g (float[2] x) => (float[2] y) { y = LeakyRelu<alpha=0.5>(x) }")
    spoiled = made.SerializeToString().replace(b"LeakyRelu", b"L\xa4akyRelu")
    with pytest.raises(ModelError, match="expected the name of an operator, in UTF-8"):
        Model.from_proto(onnx.ModelProto.FromString(spoiled))


def test_an_attribute_of_another_kind_than_its_content_is_no_body() -> None:
    made = proto(
        """g (bool c, float[2] x) => (float[2] y) {
            y = If (c) <then_branch = a () => (float[2] u) { u = Neg(x) },
                        else_branch = b () => (float[2] v) { v = Abs(x) }> }"""
    )
    made.graph.node[0].attribute[1].type = onnx.AttributeProto.INT
    with pytest.raises(ModelError, match="'else_branch' as INT; its operator takes GRAPH"):
        Model.from_proto(made)
    made.opset_import.add(domain="vendor", version=1)
    made.graph.node[0].domain = "vendor"
    model = Model.from_proto(made)
    assert len(model.main.nodes[0].bodies) == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("y = Add(x)", r"\(Add-14\) has 1 input; its operator takes 2"),
        ("y = Clip(x, x, x, x)", "has 4 inputs; its operator takes 1 to 3"),
        ("y, z = Relu(x)", "has 2 outputs; its operator takes 1"),
        ("y = Add(, x)", "lacks its input 0"),
        ("y = Concat(x, x)", "lacks the attribute 'axis'"),
        ("y = Concat<axis=1.0>(x, x)", "has the attribute 'axis' as FLOAT; its operator takes INT"),
        ("y = Concat<axis=0, axis=1>(x, x)", "has the attribute 'axis' twice"),
    ],
)
def test_a_node_that_its_operator_does_not_take_is_an_error(text: str, reason: str) -> None:
    made = proto(f"g (float[2] x) => (float[2] y) {{ {text} }}")
    with pytest.raises(ModelError, match=reason):
        Model.from_proto(made)


@pytest.mark.parametrize("text", ["y = Relu<odd=1>(x)", "y = Clip(x, , x)", "y, = Dropout(x)"])
def test_optional_parts_and_unknown_operators_are_valid(text: str) -> None:
    model = Model.from_proto(proto(f"g (float[2] x) => (float[2] y) {{ {text} }}"))
    assert len(model.main.nodes) == 1


def test_calls_are_checked_against_the_local_function() -> None:
    made = proto("g (float[2] x) => (float[2] y) { y = Relu(x, x) }")
    with pytest.raises(ModelError, match="2 inputs"):
        Model.from_proto(made)
    imports = [onnx.helper.make_opsetid("", 21)]
    sums = [onnx.helper.make_node("Add", ["a", "b"], ["c"])]
    made.functions.append(onnx.helper.make_function("", "Relu", ["a", "b"], ["c"], sums, imports))
    assert len(Model.from_proto(made).main.nodes) == 1


def test_a_graph_attribute_that_is_a_function_parameter_is_no_body() -> None:
    made = proto("g (bool c, float[2] x) => (float[2] y) { y = vendor.f(c, x) }")
    made.opset_import.add(domain="vendor", version=1)
    for name in ("then_branch", "else_branch"):
        made.graph.node[0].attribute.add(name=name, type=onnx.AttributeProto.GRAPH)
    made.graph.node[0].attribute[0].ref_attr_name = "body"
    made.graph.node[0].attribute[1].g.name = "empty"
    model = Model.from_proto(made)
    assert model.main.outputs[0].shape == (2,)
    assert len(model.main.nodes[0].bodies) == 1


def test_an_input_that_is_an_output_has_one_dtype() -> None:
    made = parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 21]>
        g (double[2] x) => (float[2] x, double[2] y) { y = Neg(x) }"""
    )
    with pytest.raises(ModelError, match=r"declares 'x' as the input double\[2\] and as the outp"):
        Model.from_proto(made)


TEXTS = """<ir_version: 10, opset_import: ["" : 21, "loXal" : 1], metadata_props: ["kXy": "vXl"]>
    g (float[nXm,2] x, bool c) => (float[mXm,2] y) <float[nXn,2] a> {
        a = loXal.fXn(x)  b = Add(a, x)  y = Relu(b) }
    <domain: "loXal", opset_import: ["" : 21, "otXer" : 1]> fXn (p) => (q) { q = Relu(p) }"""


@pytest.mark.parametrize("text", ["loXal", "kXy", "vXl", "nXm", "mXm", "fXn", "otXer"])
def test_text_that_is_not_utf_8_is_named(text: str) -> None:
    content = parser.parse_model(TEXTS).SerializeToString()
    spoiled = content.replace(text.encode(), text.encode().replace(b"X", b"\xb0"))
    with pytest.raises(ModelError, match="not UTF-8"):
        Model.from_proto(onnx.ModelProto.FromString(spoiled))


def test_text_that_is_not_read_at_first_is_the_model_s_fault() -> None:
    made = parser.parse_model(TEXTS)
    made.graph.node[0].metadata_props.add(key="a", value="nXd")
    spoiled = made.SerializeToString().replace(b"nXd", b"n\xb0d")
    with pytest.raises(PreconditionError, match=r"graph.node\[0\].metadata_props\[0\].value is n"):
        optimize(onnx.ModelProto.FromString(spoiled))


def test_an_annotation_that_names_no_value_is_left_out() -> None:
    made = proto()
    for scale in ("c", "nowhere"):
        annotation = made.graph.quantization_annotation.add(tensor_name="a")
        annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value=scale)
    found = Model.from_proto(made).to_proto().graph.quantization_annotation
    assert [each.quant_parameter_tensor_names[0].value for each in found] == ["c"]


HEAD = '<ir_version: 10, opset_import: ["" : 21, "own" : 1]> g (float[2] x, bool c) => (float[2] y)'


def spoiled(text: str, old: bytes = b"", new: bytes = b"") -> onnx.ModelProto:
    content = parser.parse_model(text).SerializeToString()
    return onnx.ModelProto.FromString(content.replace(old, new))


def without_names(made: onnx.ModelProto) -> onnx.ModelProto:
    made.graph.input[0].name = ""
    return made


def with_input_again(made: onnx.ModelProto) -> onnx.ModelProto:
    made.graph.input.append(made.graph.input[0])
    return made


def with_function_again(made: onnx.ModelProto) -> onnx.ModelProto:
    made.functions.append(made.functions[0])
    return made


def with_overload(made: onnx.ModelProto) -> onnx.ModelProto:
    for each in (made.functions[0], made.functions[0].node[0], made.graph.node[0]):
        each.overload = "wide"
    return made


def without_operator(made: onnx.ModelProto) -> onnx.ModelProto:
    made.graph.node[0].op_type = ""
    return made


FUNCTION = '<domain: "own", opset_import: ["": 21, "own": 1]> f'
INVALID: list[tuple[onnx.ModelProto, str]] = [
    (onnx.ModelProto(), "the model has no graph; expected an ONNX model"),
    (
        spoiled(HEAD.replace('"" : 21, ', "") + " { y = Neg(x) }"),
        "the model imports no opset of the default domain, but uses it",
    ),
    (
        spoiled(HEAD.replace('"" : 21', '"" : 0') + " { y = own.Neg(x) }"),
        "the model imports opset 0; the first one is 1",
    ),
    (
        spoiled(HEAD + " { y = own.f(x) }" + FUNCTION.replace("21", "0") + " (v) => (w) { w = own.g(v) }"),
        "the model imports opset 0; the first one is 1",
    ),
    (
        spoiled(HEAD + " { y = own.f(x) }" + FUNCTION + " (v) => (w) { w = own.f(v) }"),
        "the model: the local function 'own.f' calls itself (recursion)",
    ),
    (
        with_overload(spoiled(HEAD + " { y = own.f(x) }" + FUNCTION + " (v) => (w) { w = own.f(v) }")),
        "the model: the local function 'own.f' calls itself (recursion)",
    ),
    (
        with_function_again(spoiled(HEAD + " { y = own.f(x) }" + FUNCTION + " (v) => (w) { w = Neg(v) }")),
        "the model has a local function ('own', 'f', '') already",
    ),
    (
        with_input_again(spoiled(HEAD + " { y = Neg(x) }")),
        "graph 'g' lists the input 'x' twice",
    ),
    (spoiled(HEAD + " { y = Neg(x)  y = Abs(x) }"), "graph 'g' defines the value 'y' twice"),
    (spoiled(HEAD + " { x = Neg(x)  y = Abs(x) }"), "graph 'g' defines the value 'x' twice"),
    (
        without_names(spoiled(HEAD + " { y = Neg(c) }")),
        "graph 'g' has an input or initializer without a name",
    ),
    (
        spoiled(HEAD + " { oXo = Neg(x)  y = Abs(x) }", b"oXo", b"o\xa4o"),
        "graph 'g' has a value whose name b'o\\xa4o' is not UTF-8",
    ),
    (spoiled(HEAD + " { z = Neg(x) }"), "graph 'g' has the output 'y', which has no source"),
    (
        spoiled(HEAD + " { y, z = oXn.Neg(x) }", b"oXn", b"o\xa4n"),
        "node ['y'] has a domain that is not UTF-8",
    ),
    (
        spoiled(HEAD + " { [mine] y = NXg(x) }", b"NXg", b"N\xa4g"),
        "node 'mine' of graph 'g' has the op_type b'N\\xa4g'; expected the name of an operator, in UTF-8",
    ),
    (
        without_operator(spoiled(HEAD + " { [mine] y = Neg(x) }")),
        "node 'mine' of graph 'g' has the op_type ''; expected the name of an operator, in UTF-8",
    ),
    (
        spoiled(HEAD + " { [mXe] y = Neg(x) }", b"mXe", b"m\xa4e"),
        "node b'm\\xa4e' (Neg) has a name that is not UTF-8",
    ),
    (
        spoiled(HEAD + " { y = Add(x, z) }"),
        "node 'y' (Add) reads 'z', which nothing defines",
    ),
]  # fmt: skip


def test_what_is_wrong_with_a_model_is_said() -> None:
    for made, because in INVALID:
        with pytest.raises(ModelError) as caught:
            Model.from_proto(made)
        assert str(caught.value) == because


def test_what_may_look_wrong_is_read() -> None:
    twice = spoiled(HEAD.replace('"" : 21', '"" : 0, "ai.onnx" : 21') + " { y = Neg(x) }")
    assert Model.from_proto(twice).opset_imports == {"": 21, "own": 1}
    unused = HEAD + " { y = Neg(x) }" + FUNCTION + " (v) => (w) { w = own.f(v) }"
    assert Model.from_proto(spoiled(unused)).functions[0].function_name == "f"
    foreign = spoiled(HEAD.replace('"" : 21, ', "") + " { y = own.Neg(x) }")
    assert Model.from_proto(foreign).opset_imports == {"own": 1}
    spelt = spoiled(HEAD.replace('"" : 21', '"ai.onnx" : 21') + " { y = Neg(x) }")
    assert Model.from_proto(spelt).spellings == {"": "ai.onnx", "own": "own"}
    spelt.opset_import[0].ClearField("domain")
    assert Model.from_proto(spelt).spellings == {"": None, "own": "own"}


def test_a_file_in_any_order_is_sorted() -> None:
    text = (
        HEAD
        + """ { y = Add(b, i)  i = If(c) <
        then_branch = t () => (float[2] u) { u = Neg(a) },
        else_branch = e () => (float[2] x) { x = Abs(b) }>  b = Neg(a)  a = Exp(x)  d = Neg(x) }"""
    )
    model = Model.from_proto(spoiled(text))
    assert [node.label for node in model.main.topological_order()] == ["a", "b", "i", "y", "d"]
    assert [node.label for node in model.main.nodes] == ["y", "i", "b", "a", "d"]
    model.check_view()
    made = model.to_proto()
    assert [node.output[0] for node in made.graph.node] == ["a", "b", "i", "y", "d"]
    sorted_twice = Model.from_proto(made)
    assert sorted_twice.main._order is not None
    sorted_twice.check_view()


def test_inner_names_that_hide_outer_ones_are_made_new() -> None:
    text = (
        HEAD
        + """ { a = Neg(x)  y = If(c) <
        then_branch = t () => (float[2] a) { a = Abs(x)  b = Exp(a) },
        else_branch = e () => (float[2] b) <float[2] a = {1,2}> { b = Add(x, a) }> }"""
    )
    model = Model.from_proto(spoiled(text))
    model.check_view()
    names = [sorted(graph.values) for graph in model.graphs()]
    assert names == [["a", "c", "x", "y"], ["a_1", "b"], ["a_2", "b"]]
    first = model.main.nodes[1].bodies[0].nodes
    assert [(list(node.proto.input), list(node.proto.output)) for node in first] == [
        (["x"], ["a_1"]), (["a_1"], ["b"]),
    ]  # fmt: skip


def test_declarations_and_names_of_training_are_noted() -> None:
    made = spoiled(
        HEAD.replace("float[2] y)", "float[2] y) <float[2] w = {1,2}, float[2] a>")
        + " { a = Add(x, w)  y = Neg(a) }"
    )
    made.graph.value_info.add(name="gone")
    made.graph.value_info.add(name="")
    training = made.training_info.add()
    training.algorithm.node.add(op_type="Neg", input=["a", "", "nowhere"], output=["g"])
    training.initialization.node.add(op_type="Neg", input=["x"], output=["h"])
    training.update_binding.add(key="w", value="g")
    training.initialization_binding.add(key="y", value="h")
    model = Model.from_proto(made)
    found = {
        name: (value.pins, value.is_trained, value.declared is not None)
        for name, value in model.main.values.items()
    }
    assert found == {
        "w": (1, True, False), "x": (1, False, False), "c": (0, False, False),
        "a": (1, False, True), "y": (1, True, True),
    }  # fmt: skip
    assert [(value and value.name, info.name) for value, info in model.main.declarations] == [
        ("a", "a"), (None, "gone"), (None, ""),
    ]  # fmt: skip
    assert model.names.fresh("gone") == "gone_1"
    model.check_view()


def test_nodes_in_another_order_than_they_read_are_sorted_and_cycles_are_named() -> None:
    branch = "then_branch = t () => (float[2] u) { u = %s }, else_branch = e () => (float[2] w) { w = Abs(x) }"
    for nodes, order in (
        ("y = Neg(a)  a = Exp(x)", ["a", "y"]),
        (f"y = If(c) <{branch % 'Neg(a)'}>  a = Exp(x)", ["a", "y"]),
        ("y = Add(x, y)", "graph 'g' has a cycle: y <- y"),
        (f"y = If(c) <{branch % 'Neg(y)'}>", "graph 'g' has a cycle: y <- y"),
        ("y = Add(x, a)  a = Neg(y)", "graph 'g' has a cycle: y <- a <- y"),
    ):
        made = spoiled(f"{HEAD} {{ {nodes} }}")
        if isinstance(order, str):
            with pytest.raises(ModelError, match=re.escape(order)):
                Model.from_proto(made)
        else:
            model = Model.from_proto(made)
            assert [node.label for node in model.main.topological_order()] == order


def test_what_a_file_says_of_values_is_kept(tmp_path: Path) -> None:
    text = (
        HEAD.replace("float[2] y)", "float[2] y) <float[2] y, float s = {1}>")
        + """ { k = Constant<value_float = 1.0>()  a, , b = own.F(x, k)  y = If(c) <
        then_branch = t () => (float[2] a) { }, else_branch = e () => (float[2] w) { w = Abs(b) }> }"""
    )
    made = spoiled(text)
    made.graph.value_info[0].doc_string = "of the value"
    made.graph.quantization_annotation.add(tensor_name="x").quant_parameter_tensor_names.add(
        key="SCALE_TENSOR", value="s"
    )
    model = Model.from_proto(made)
    values = model.main.values
    assert values["y"].declared is not None
    assert values["y"].declared.doc_string == "of the value"
    assert values["a"].declared is None
    assert {name: value.pins for name, value in values.items() if value.pins} == {"s": 1}
    assert [value and value.name for value in model.main.nodes[1].outputs] == ["a", None, "b"]
    assert not model.has_external
    model.check_view()
    made.graph.initializer[0].ClearField("float_data")
    made.graph.initializer[0].data_location = onnx.TensorProto.EXTERNAL
    made.graph.initializer[0].external_data.add(key="location", value="weights.bin")
    (tmp_path / "weights.bin").write_bytes(bytes(4))
    (tmp_path / "model.onnx").write_bytes(made.SerializeToString())
    assert Model.load(tmp_path / "model.onnx").has_external


def test_bodies_whose_operator_may_look_names_up_keep_those_of_the_file() -> None:
    text = (
        HEAD
        + """ { y = OP(c) <then_branch = t () => (float[2] x) { x = Neg(c) },
                           else_branch = e () => (float[2] w) { w = Abs(x) }> }"""
    )
    for operator, names in (("own.Choose", [{"x_1": "x"}, {}]), ("If", [{}, {}])):
        made = spoiled(text.replace("OP", operator))
        bodies = Model.from_proto(made).main.nodes[0].bodies
        assert [body.file_names for body in bodies] == names
