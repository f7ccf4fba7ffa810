"""Declared types change with all that follows from them, and contradictions are dropped."""

import onnx
import pytest
from onnx.helper import make_tensor_value_info as tensor_info

from tests.graph.editor import fresh
from tests.small import content, model as small, named, parsed
from tiered.graph import Model, TensorType
from tiered.graph.edits.declared_types import drop_contradicted, drop_false_declarations
from tiered.support.errors import ModelError

DYNAMIC = """g (float[N,3] x) => (float[N,3] y, int64[2] s) <float[3] w = {1, 2, 3}>
    { a = Mul(x, w)  y = Relu(a)  s = Shape(x) }"""


def test_a_declared_type_is_written_and_all_follows() -> None:
    made = small(DYNAMIC)
    graph, x, y = made.main, made.main.values["x"], made.main.values["y"]
    graph.set_declarations([(graph.values["a"], tensor_info("a", 1, [9, 3]))])
    before = content(made)
    mark = made.mark()
    graph.set_declared_type(x, TensorType(1, (5, 3)))
    assert (x.shape, y.shape, graph.declarations) == ((5, 3), (5, 3), [])
    graph.set_declared_type(y, TensorType(1, (5, 3)))
    made.check_view(types=True)
    proto = made.to_proto()
    shapes = [info.type.tensor_type.shape.dim[0].dim_value for info in (*proto.graph.input,)]
    assert shapes == [5]
    assert proto.graph.output[0].type.tensor_type.shape.dim[0].dim_value == 5
    onnx.checker.check_model(proto, full_check=True)
    made.undo_to(mark)
    assert content(made) == before
    with pytest.raises(ModelError, match="'a' has no declaration"):
        graph.set_declared_type(graph.values["a"], TensorType(1, (5, 3)))


def shown(info: onnx.ValueInfoProto) -> list[int | str]:
    dims = info.type.tensor_type.shape.dim
    return [dim.dim_value if dim.HasField("dim_value") else dim.dim_param for dim in dims]


@pytest.mark.parametrize(
    ("name", "kind", "because"),
    [
        ("a", TensorType(1, (2, 3)), "'a' has no declaration in graph 'g'"),
        ("w", TensorType(1, (3,)), "'w' has no declaration in graph 'g'"),
        ("y", TensorType(7, ("N", 3)), r"'y' is computed as float\[N,3\], it cannot be declared"),
        ("y", TensorType(1, ("N",)), r"'y' is computed as float\[N,3\], it cannot be declared"),
        ("s", TensorType(7, (3,)), r"'s' is computed as int64\[2\]"),
    ],
)
def test_a_declaration_that_contradicts_the_model_is_refused(
    name: str, kind: TensorType, because: str
) -> None:
    model = small(DYNAMIC)
    before = content(model)
    with pytest.raises(ModelError, match=because):
        model.main.set_declared_type(named(model, name), kind)
    assert content(model) == before
    model.check_view(types=True)


def test_a_default_is_declared_as_its_contents_are() -> None:
    model = parsed("(float[N] w) => (float[N] y) <float[3] w = {1,2,3}> { y = Relu(w) }")
    w = named(model, "w")
    for wrong in (TensorType(11, (3,)), TensorType(1, (4,)), TensorType(1, (3, 1))):
        with pytest.raises(ModelError, match=r"'w' is float\[3\] by its contents"):
            model.main.set_declared_type(w, wrong)
    for right in (TensorType(1, ("M",)), TensorType(1, (3,)), TensorType(1, (None,))):
        model.main.set_declared_type(w, right)
    model.check_view(types=True)


def test_a_function_declares_nothing() -> None:
    model = fresh()
    function = model.functions[0]
    with pytest.raises(ModelError, match="has no declaration in graph"):
        function.set_declared_type(function.inputs[0], TensorType(1, (3,)))


def test_an_input_that_is_an_output_is_declared_in_both_places() -> None:
    model = parsed("(float[N] x) => (float[N] x, float[N] y) { y = Relu(x) }")
    model.main.set_declared_type(named(model, "x"), TensorType(1, (4,)))
    made = model.to_proto().graph
    assert [shown(info) for info in (*made.input, *made.output)] == [[4], [4], ["N"]]


def declaring(*infos: onnx.ValueInfoProto) -> Model:
    proto = small(DYNAMIC).to_proto()
    proto.graph.value_info.extend(infos)
    return Model.from_proto(proto)


def test_a_value_info_that_contradicts_the_inferred_type_goes() -> None:
    model = declaring(
        tensor_info("a", 1, ["N", 4]), tensor_info("w", 1, [3]), tensor_info("nothing", 1, [1])
    )
    assert drop_contradicted(model.main) == ["'a': float[N,4], and it is float[N,3]"]
    assert [info.name for _, info in model.main.declarations] == ["w", "nothing"]
    mark = model.mark()
    assert drop_contradicted(model.main) == []
    assert model.mark() == mark


@pytest.mark.parametrize("dims", [["N", 3], ["M", 3], [None, 3], [5, 3]])
def test_a_value_info_that_may_be_true_stays(dims: list[int | str | None]) -> None:
    model = declaring(tensor_info("a", 1, dims))
    assert drop_contradicted(model.main) == []


def test_another_rank_contradicts() -> None:
    assert len(drop_contradicted(declaring(tensor_info("a", 1, ["N"])).main)) == 1


def test_an_output_of_a_body_keeps_its_dtype_without_its_false_shape() -> None:
    model = parsed(
        """(float[2,3] x, bool c) => (float[2,3] y) {
        y = If (c) <then_branch = t () => (float[2,4] u) { u = Neg(x) },
                    else_branch = f () => (float[2,3] v) { k = Abs(x)  v = Exp(k) }> }"""
    )
    found = drop_false_declarations(model)
    assert found == ["'u': float[2,4], and it is float[2,3]"]
    then, other = model.main.nodes[0].bodies
    kind = then.output_infos[0].type.tensor_type
    assert (kind.elem_type, kind.HasField("shape")) == (1, False)
    assert shown(other.output_infos[0]) == [2, 3]
    assert drop_false_declarations(model) == []
