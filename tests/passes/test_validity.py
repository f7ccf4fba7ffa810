"""Whether a result is valid ONNX: which error says so, and what the model had before."""

import re
from collections.abc import Callable

import onnx
import pytest

from tests.small import made_by, model, named, parsed
from tiered import Model, ModelError, PassContext, ShapeError, get_pass
from tiered.passes.validity import check_result, is_contrib_complaint_new

PAIR = "(float[N,2] x, float[M,2] z) => (float[N,2] y) { a = Add(x, z)  y = Relu(a) }"


def checked(of: Model, *, strict: bool = False) -> list[str]:
    """Return the notes of a model that is held against the check."""
    before = len(of.notes)
    check_result(of, PassContext.isolated(strict=strict))
    return [str(note) for note in of.notes][before:]


def set_alpha(of: Model) -> None:
    of.main.set_attribute(made_by(of, "y"), "alpha", 1.0)


def test_an_edit_that_the_checker_rejects_is_an_error_of_the_result() -> None:
    of = parsed(PAIR)
    set_alpha(of)
    with pytest.raises(ModelError, match=r"onnx.checker rejects the result: .*alpha"):
        checked(of)


def _sized(**shapes: tuple[int, int]) -> tuple[Model, PassContext]:
    of, ctx = parsed(PAIR), PassContext.isolated()
    with ctx:
        get_pass("const_input_shape", shape=shapes)(of)
    return of, ctx


def test_sizes_that_fit_are_not_blamed_for_another_fault() -> None:
    of, ctx = _sized(x=(3, 2), z=(3, 2))
    set_alpha(of)
    with pytest.raises(ModelError, match=r"onnx.checker rejects the result: .*alpha") as error:
        check_result(of, ctx)
    assert not isinstance(error.value, ShapeError)


def _of_opset(of: Model) -> onnx.ModelProto:
    proto = of.to_proto()
    proto.opset_import[0].version = 99
    return proto


def _without_outputs(of: Model) -> onnx.ModelProto:
    proto = of.to_proto()
    del proto.graph.output[:]
    return proto


def _of_another_domain(of: Model) -> onnx.ModelProto:
    proto = of.to_proto()
    proto.graph.node[0].domain = "acme"
    return proto


def _with_one_name(of: Model) -> onnx.ModelProto:
    proto = of.to_proto()
    for node in proto.graph.node:
        node.name = "twice"
    return proto


def _with_alpha(of: Model) -> onnx.ModelProto:
    set_alpha(of)
    return of.to_proto()


@pytest.mark.parametrize(
    ("change", "note"),
    [
        (_of_opset, "the model is of opset 99, and onnx"),
        (_without_outputs, "the model has no outputs: nothing that it computes is used"),
        (_of_another_domain, "[Nn]o opset (of the|import for) domain 'acme'"),
        (_with_one_name, "two nodes of one graph are named 'twice'"),
        (_with_alpha, "onnx.checker rejects the model as it was loaded"),
    ],
)
def test_what_the_model_had_before_is_a_note_and_strictly_an_error(
    change: Callable[[Model], onnx.ModelProto], note: str
) -> None:
    proto = change(model(f"g {PAIR}"))
    assert any(re.search(note, text) for text in checked(Model.from_proto(proto)))
    with pytest.raises(ModelError, match=note):
        checked(Model.from_proto(proto), strict=True)


def test_a_valid_model_has_no_note() -> None:
    of = parsed(PAIR)
    for node in of.main.nodes:
        of.main.rename_node(node, "")  # no name is no name twice
    assert checked(of) == []


BIASED = """(float[3,4] x, float[4] b) => (float[3,4] y) <float[3] c = {1, 2, 3}> {
    a = com.microsoft.BiasGelu(x, %s)  y = Relu(a) }"""


def test_operands_that_never_fit_are_a_note_and_those_of_a_pass_an_error() -> None:
    (note,) = checked(parsed(BIASED % "c"))
    assert note.startswith("operands do not fit in the model as it was loaded: ")
    with pytest.raises(ModelError, match="operands do not fit in the model as it was loaded"):
        checked(parsed(BIASED % "c"), strict=True)
    of = parsed(BIASED % "b")
    of.main.set_input(made_by(of, "a"), 1, named(of, "c"))
    with pytest.raises(ModelError, match="operands do not fit in the result: "):
        checked(of)


def test_a_model_that_no_file_holds_has_no_earlier_fault() -> None:
    of = parsed(BIASED % "c")
    of.origin = None
    assert not is_contrib_complaint_new(of)
