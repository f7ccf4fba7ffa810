"""Names of new local functions, and which nodes may be one."""

import pytest

from tests.small import made_by, parsed
from tiered.graph import Model
from tiered.rewriter.idioms.functions.outlining import (
    LONGEST,
    FunctionNames,
    marks_of,
    why_not_outlined,
)
from tiered.support.errors import UsageError

TEXT = """<ir_version: {}, opset_import: ["": 21, "l": 1]> g (float[2] x) => (float[2] y) {{
    a = Neg(x) b = Abs(a) u = Exp(x) c = l.called(b) y = l.f(c) }}
    <domain: "l", opset_import: ["": 21]> f (p) => (q) {{ q = Neg(p) }}"""


def model(ir: int = 10) -> Model:
    return parsed(TEXT.format(ir))


def test_a_name_is_unlike_those_of_functions_and_of_calls() -> None:
    names = FunctionNames(model(), "l")
    assert [names.fresh(name)[1] for name in ("f", "called", "new", "new", "new")] == [
        "f_1", "called_1", "new", "new_1", "new_2",
    ]  # fmt: skip
    assert names.fresh("f") == ("l", "f_2", "")
    other = FunctionNames(model(), "mine")
    assert other.fresh("f") == ("mine", "f", "")


def test_a_name_is_of_letters_digits_and_lines_and_not_too_long() -> None:
    names = FunctionNames(model(), "l")
    assert names.fresh("/encoder/0/Neg")[1] == "encoder_0_Neg"
    assert names.fresh("//")[1] == "function"
    assert names.fresh("")[1] == "function_1"
    assert names.fresh("x" * LONGEST)[1] == "x" * 80
    assert names.fresh("x" * 81)[1] == "x" * 80 + "_1"


@pytest.mark.parametrize("domain", ["", "ai.onnx"])
def test_the_domain_of_onnx_has_no_local_functions(domain: str) -> None:
    with pytest.raises(UsageError, match=f"need a domain of their own, not '{domain}'"):
        FunctionNames(model(), domain)


def test_outlined_nodes_are_a_call_of_a_new_name() -> None:
    of = model()
    names = FunctionNames(of, "l")
    call = names.outline(of.main, [made_by(of, "a"), made_by(of, "b")], "f")
    assert (call.op_type, call.domain) == ("f_1", "l")
    assert ("l", "f_1", "") in names.ids
    assert [node.op_type for node in of.functions[-1].nodes] == ["Neg", "Abs"]


def test_why_nodes_are_no_function() -> None:
    for ir, marks, names, because in (
        (8, {}, "ab", None),
        (7, {}, "ab", "local functions need IR 8, not 7"),
        (8, {"a": {"tiered.device": "gpu"}}, "ab", "the nodes have different marks"),
        (8, {"a": {"tiered.compiler": "c"}, "b": {"tiered.compiler": "c"}}, "ab", None),
        (8, {"a": {"other": "x"}}, "ab", None),
        (8, {"b": {"tiered.skip_optimization": "1"}}, "ab", "a node is marked to stay as it is"),
        (8, {}, "u", "no output of the nodes is used"),
    ):
        text = TEXT.format(max(ir, 8))
        of = parsed(text if ir > 7 else text.partition("<domain")[0].replace("8", "7", 1))
        nodes = [made_by(of, name) for name in names]
        for node in nodes:
            for key, value in marks.get(node.output.name, {}).items():
                node.proto.metadata_props.add(key=key, value=value)
        found = why_not_outlined(of.main, nodes)
        assert (None if found is None else str(found)) == because, (ir, marks, names)


def test_marks_are_the_compiler_and_the_device() -> None:
    node = made_by(model(), "a")
    assert marks_of(node) == (None, None)
    node.proto.metadata_props.add(key="tiered.device", value="gpu")
    assert marks_of(node) == (None, "gpu")
