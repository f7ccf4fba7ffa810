"""Type variables: the values and operands that have one type together, and why some stay."""

from collections.abc import Collection

import pytest

from tests.small import parsed
from tiered import DataType, Graph, Node, Value
from tiered.numerics.precision.narrowing import FloatNarrowing
from tiered.numerics.precision.variables import TypeVariable, variables_of

HALF = DataType.FLOAT16


class Refusing(FloatNarrowing):
    """Refuses some values, and the nodes of some operators."""

    def __init__(
        self, low: DataType = HALF, names: Collection[str] = (), operators: Collection[str] = ()
    ) -> None:
        super().__init__(low)
        self.names = names
        self.operators = operators

    def keep(self, node: Node) -> str:
        return f"{node.op_type} is kept" if node.op_type in self.operators else super().keep(node)

    def refuse(self, value: Value, node: Node | None = None, place: int = 0) -> str:
        return f"{value.name} does not fit" if value.name in self.names else ""


def shown(variable: TypeVariable) -> str:
    """Return a variable as text: its values, its uses, and why it is kept or that it is free."""
    uses = [
        f"{use.reader.name}:{use.place}" if isinstance(use.reader, Graph)
        else f"{next(filter(None, use.reader.outputs)).name}.{use.place}"
        for use in variable.uses
    ]  # fmt: skip
    values = " ".join(value.name for value in variable.values)
    assert not (variable.kept and variable.is_free)
    end = variable.kept or ("free" if variable.is_free else "")
    return f"{values} <- {' '.join(uses)} | {end}".replace("  ", " ")


def variables(
    text: str, narrowing: FloatNarrowing | None = None, *, keeps_io: bool = False, opset: int = 21
) -> list[str]:
    model = parsed(text, opset=opset)
    return [shown(each) for each in variables_of(model, narrowing or Refusing(), keeps_io=keeps_io)]


def test_inputs_and_outputs_of_the_model_may_keep_their_type() -> None:
    text = "(float[2] x, int64 n) => (float[2] y, int64 n) { y = Sin(x) }"
    assert variables(text, keeps_io=True) == [
        "x <- | an input of the model", "y <- y.0 | ", " <- g:0 | an output of the model",
    ]  # fmt: skip
    assert variables(text) == ["x <- | ", "y <- y.0 | "]


def test_an_input_that_changes_must_fit_and_be_castable() -> None:
    text = "(float[2] x) => (float[2] y) { y = Sin(x) }"
    assert variables(text, Refusing(names=["x"])) == [
        "x <- | x does not fit", "y <- y.0 | x does not fit",
    ]  # fmt: skip
    found = variables(text, Refusing(DataType.BFLOAT16), opset=12)
    assert found[0] == "x <- | Cast has no bfloat16"


def test_before_opset_6_no_cast_can_be_added() -> None:
    text = "(float[2] x) => (float[2] y) { y = Relu(x) }"
    reason = "the Cast of this opset names dtypes by strings: convert to opset 6"
    assert variables(text, opset=5) == [f"x <- | {reason}", f"y <- y.0 | {reason}"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        # one type for all operands of a parameter
        ("Add(x, z)", ["y <- y.0 y.1 | "]),
        ("Where(c, x, z)", ["y <- y.1 y.2 | free"]),
        ("Clip(x, , k)", ["y <- y.0 y.2 | "]),
        ("Reshape(x, s)", ["y <- y.0 | free"]),
        ("Gather(x, s)", ["y <- y.0 | free"]),
        # two parameters
        ("Pow(x, z)", ["y <- y.0 | ", " <- y.1 | "]),
        ("Dropout(x, k)", ["y <- y.0 | ", " <- y.1 | "]),
        # conversions
        ("Cast<to=1>(i)", ["y <- | free"]),
        ("Cast<to=1>(x)", ["y <- | free"]),
        ("CastLike(i, z)", ["y <- y.1 | free"]),
        ("CastLike(x, z)", ["y <- y.1 | free"]),
        ("Constant<value_float = 1.0>()", []),
        ("RandomNormal<shape=[2]>()",
         ["y <- | other numbers would be drawn, and onnxruntime has no kernel"]),
        ("ConstantOfShape(s)", ["y <- | free"]),
        ("EyeLike<dtype=1>(m)", ["y <- | free"]),
        ("acme.Any(x)", [
            "y <- y.0 | an operator that ONNX does not define",
        ]),
    ],
)  # fmt: skip
def test_operands_and_outputs_of_one_parameter_are_one_variable(
    line: str, expected: list[str]
) -> None:
    text = f"""(float[2] x, float[2] z, float k, bool[2] c, int64[2] i, int64[2,2] m)
        => (float[A] y) <int64[1] s = {{-1}}> {{ y = {line} }}"""
    assert variables(text)[3:] == expected


def test_an_operator_without_the_type_keeps_it() -> None:
    text = """(float[2,4] x, float[2] s) => (float[2,4] y) { y = LpNormalization(x) }"""
    found = variables(text, Refusing(DataType.FLOAT8E4M3FN))
    assert found[-1].endswith("| LpNormalization has no float8e4m3fn")


@pytest.mark.parametrize(
    ("line", "result"),
    [("Shape(x)", "int64[1] y"), ("Size(x)", "int64 y"), ("IsNaN(x)", "bool[2] y"),
     ("IsInf(x)", "bool[2] y"), ("Cast<to=7>(x)", "int64[2] y")],
)  # fmt: skip
def test_what_reads_either_type_has_no_variable(line: str, result: str) -> None:
    opset = 20
    text = f"(float[2] x) => ({result}) {{ y = {line} }}"
    assert variables(text, opset=opset) == ["x <- | "]


def test_before_its_opset_takes_the_type_it_has_one() -> None:
    text = "(float[2] x) => (bool[2] y) { y = IsInf(x) }"
    assert variables(text, opset=10) == ["x <- | ", " <- y.0 | IsInf has no float16"]


def test_a_value_that_does_not_fit_keeps_all_of_its_variable() -> None:
    text = "(float[2] x, float[2] z) => (float[2] y) { y = Add(x, z) }"
    assert variables(text, Refusing(names=["z"]))[-1] == "y <- y.0 y.1 | z does not fit"
    assert variables(text, Refusing(names=["y"]))[-1] == "y <- y.0 y.1 | y does not fit"
    assert variables(text, Refusing(names=["y", "z"]))[-1] == "y <- y.0 y.1 | z does not fit"


def test_a_node_that_is_kept_keeps_what_it_reads_and_computes() -> None:
    for line, result, use in (("Add(x, x)", "float", "y <- y.0 y.1"),
                              ("IsNaN(x)", "bool", " <- y.0"),
                              ("Shape(x)", "int64", " <- y.0")):  # fmt: skip
        text = f"(float[2] x) => ({result}[A] y) {{ y = {line} }}"
        name = line.partition("(")[0]
        assert variables(text, Refusing(operators=[name]))[1:] == [f"{use} | {name} is kept"]


def test_absent_outputs_have_no_variable() -> None:
    text = """(float[2,3] x, float[3] s) => (float[2,3] y, float[2,1] d) {
        y, , d = LayerNormalization(x, s) }"""
    named = "attribute 'stash_type' names the dtype"
    assert variables(text, Refusing(DataType.BFLOAT16))[2:] == [
        "y <- y.0 y.1 | ",
        f"d <- | {named}",
    ]


def test_outputs_whose_type_an_attribute_names_stay() -> None:
    text = """(float[2,3] x, float[3] s) => (float[2,3] y, float[2,1] m) {
        y, m = LayerNormalization(x, s) }"""
    found = variables(text, Refusing(DataType.BFLOAT16))
    assert "m <- | attribute 'stash_type' names the dtype" in found
    assert "y <- y.0 y.1 | " in found


def test_results_that_depend_on_the_bits_stay() -> None:
    text = "(float[2] x) => (int32[2] y) { y = BitCast<to=6>(x) }"
    assert variables(text, opset=26)[-1] == " <- y.0 | its result depends on the bits"


def test_sequences_stay() -> None:
    text = "(float[2] x) => (seq(float[2]) y) { y = SequenceConstruct(x) }"
    found = variables(text)
    assert found[-1] == " <- y.0 | a sequence, or a tensor of unknown type"


def test_attributes_of_numbers_of_other_domains_may_decide_the_type() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "ai.onnx.ml" : 3]> g
        (float[1,2] x) => (float[1,2] y) { y = ai.onnx.ml.Scaler(x) }"""
    none = "Scaler has no float16"
    assert variables(text)[1:] == [f" <- y.0 | {none}", f"y <- | {none}"]
    text = text.replace("Scaler(", "Scaler<offset = [1.0], scale = [2.0]>(")
    typed = "numbers of an attribute may decide the dtype"
    assert variables(text)[1:] == [f" <- y.0 | {typed}", f"y <- | {typed}"]


# --- bodies ---------------------------------------------------------------------------------------

IF = """(float[2] x, bool c) => (float[2] y) {
    y = If(c) <then_branch = t () => (float[2] p) { p = Sin(x) },
               else_branch = e () => (float[2] q) { q = Cos(x) }> }"""
LOOP = """(float[2] x, int64 n, bool c) => (float[2] y, float[A,2] z) {
    y, z = Loop(n, c, x) <body = f (int64 i, bool g, float[2] s) => (bool h, float[2] o, float[2] r)
        { h = Identity(g)  o = Cos(s)  r = Sin(o) }> }"""
SCAN = """(float[4,2] x, float[2] k) => (float[2] y, float[4,2] z) {
    y, z = Scan<num_scan_inputs=1, body = f (float[2] s, float[2] e) => (float[2] o, float[2] r)
        { o = Add(s, e)  r = Tanh(e) }>(k, x) }"""


def test_branches_of_an_if_give_one_type() -> None:
    assert variables(IF) == ["x <- | ", "y <- t:0 e:0 | free", "p <- p.0 | ", "q <- q.0 | "]


def test_a_state_of_a_loop_has_one_type_inside_and_outside() -> None:
    assert variables(LOOP) == [
        "x <- | ", "s y <- y.2 f:1 | free", "z <- f:2 | free", "o <- o.0 | ", "r <- r.0 | ",
    ]  # fmt: skip


def test_a_scan_has_states_elements_and_results() -> None:
    assert variables(SCAN)[2:] == [
        "s y <- y.0 f:0 | free", "e <- y.1 | free", "z <- f:1 | free", "o <- o.0 o.1 | ",
        "r <- r.0 | ",
    ]  # fmt: skip


def test_what_a_body_passes_on_must_fit() -> None:
    assert variables(LOOP, Refusing(names=["o"]))[1] == "s y <- y.2 f:1 | o does not fit"
    assert variables(IF, Refusing(names=["q"]))[1] == "y <- t:0 e:0 | q does not fit"
    assert variables(SCAN, Refusing(names=["x"]))[3] == "e <- y.1 | x does not fit"


def test_a_loop_without_the_type_keeps_it() -> None:
    found = variables(LOOP, Refusing(DataType.BFLOAT16), opset=12)
    assert found[1] == "s y <- y.2 f:1 | Loop has no bfloat16"


def test_what_a_body_passes_on_stays_where_no_cast_is_or_its_node_is_kept() -> None:
    reason = "the Cast of this opset names dtypes by strings: convert to opset 6"
    text = IF.replace("Sin", "Relu").replace("Cos", "Tanh")
    assert variables(text, opset=5)[1] == f"y <- t:0 e:0 | {reason}"
    for text, name, use in ((IF, "If", "y <- t:0 e:0"), (LOOP, "Loop", "s y <- y.2 f:1")):
        assert variables(text, Refusing(operators=[name]))[1] == f"{use} | {name} is kept"


def test_what_a_body_passes_on_stays_where_a_type_is_unknown() -> None:
    text = IF.replace("Cos(x)", "acme.Any(x)").replace("float[2] q", "q")
    assert variables(text)[1] == "y <- t:0 e:0 | a value of unknown type"


def test_an_output_of_a_loop_may_be_absent() -> None:
    text = LOOP.replace("float[2] y, float[A,2] z", "float[A,2] z").replace("y, z =", ", z =")
    assert variables(text)[1:3] == ["s <- z.2 f:1 | free", "z <- f:2 | free"]


def test_a_state_of_a_loop_may_be_absent_in_a_model_that_is_not_valid() -> None:
    text = """(int64 n, bool c) => (int64[2] y) {
        y = Loop(n, c, "") <body = f (int64 i, bool g, int64[2] s) => (bool h, int64[2] o)
            { h = Identity(g)  o = Neg(s) }> }"""
    assert variables(text) == []


def test_states_of_other_types_have_no_variable() -> None:
    text = LOOP.replace("float[2] x", "double[2] x").replace("float", "double")
    assert variables(text) == []


def test_the_interface_of_another_body_stays() -> None:
    text = """(seq(float[2]) x) => (seq(float[2]) y) {
        y = SequenceMap(x) <body = f (float[2] e) => (float[2] r) { r = Sin(e) }> }"""
    found = variables(text)
    assert "e <- f:0 | the interface of a body" in found


def test_a_scan_of_opset_8_is_no_state_machine() -> None:
    text = """(float[2,4,3] x, float[2,3] k) => (float[2,3] y, float[2,4,3] z) {
        y, z = Scan<num_scan_inputs = 1, body = f (float[3] s, float[3] e)
            => (float[3] o, float[3] p) { o = Add(s, e)  p = Tanh(e) }>( , k, x) }"""
    found = variables(text, opset=8)
    assert any(each.endswith("| a body of Scan") for each in found)
    assert "s e <- f:0 f:1 | the interface of a body" in found
