from collections.abc import Callable, Iterable

import numpy as np
import onnx
import pytest

from tiered.extensions.debug import reduce_model
from tiered.runtime import make_inputs, shared_worker
from tiered.support.errors import TieredError, UsageError
from tiered.testing import parse

LONG = """(float[4,64] x) => (float[4,64] y, float[4,64] z) <float[64,64] w> {
    a = Neg(x)  b = MatMul(a, w)  c = Relu(b)  d = Abs(c)  e = Exp(d)  y = Neg(e)
    f = Abs(x)  z = Neg(f) }"""


def long() -> onnx.ModelProto:
    proto = parse(LONG)
    weight = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)
    del proto.graph.initializer[:]
    proto.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    kept = [info for info in proto.graph.value_info if info.name != "w"]
    del proto.graph.value_info[:]
    proto.graph.value_info.extend(kept)
    return proto


def ops(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


def test_only_the_nodes_that_fail_are_left() -> None:
    def fails(model: onnx.ModelProto) -> bool:
        reads = {name for node in model.graph.node if node.op_type == "Abs" for name in node.input}
        return any(n.op_type == "Relu" and n.output[0] in reads for n in model.graph.node)

    said: list[str] = []
    made = reduce_model(long(), fails, said.append)
    assert ops(made) == ["Relu", "Abs"]
    onnx.checker.check_model(made, full_check=True)
    assert [info.name for info in made.graph.input] == ["b"]
    assert not made.graph.initializer
    assert said


def test_weights_become_ones_where_values_do_not_matter() -> None:
    def fails(model: onnx.ModelProto) -> bool:
        return "MatMul" in ops(model) and 64 in model.graph.initializer[0].dims

    made = reduce_model(long(), fails)
    assert ops(made) == ["MatMul"]
    assert np.all(onnx.numpy_helper.to_array(made.graph.initializer[0]) == 1)


def test_a_model_that_does_not_fail_cannot_be_reduced() -> None:
    with pytest.raises(UsageError, match="does not fail to begin with"):
        reduce_model(long(), lambda model: False)


def test_the_given_model_is_not_changed() -> None:
    given = long()
    before = given.SerializeToString(deterministic=True)
    reduce_model(given, lambda model: "Exp" in ops(model))
    assert given.SerializeToString(deterministic=True) == before


def runs(model: onnx.ModelProto) -> bool:
    try:
        shared_worker().run(model, make_inputs(model).feeds)
    except TieredError:
        return False
    return True


def test_dims_get_smaller_as_long_as_it_fails() -> None:
    def fails(model: onnx.ModelProto) -> bool:
        """Fail where a MatMul runs whose weight has at least three columns."""
        if "MatMul" not in ops(model):
            return False
        return model.graph.initializer[0].dims[1] >= 3 and runs(model)

    made = reduce_model(long(), fails)
    (tensor,) = made.graph.initializer
    shape = [dim.dim_value for dim in made.graph.input[0].type.tensor_type.shape.dim]
    assert (list(tensor.dims), shape) == ([4, 4], [4, 4])


def test_numbers_of_shapes_follow_the_dims() -> None:
    text = """(float[2,12,64] x) => (float[2,768] y) <int64[2] s = {2,768}> {
        a = Reshape(x, s)  y = Relu(a) }"""

    def fails(model: onnx.ModelProto) -> bool:
        return ops(model) == ["Reshape", "Relu"] and runs(model)

    made = reduce_model(parse(text), fails)
    shape = [dim.dim_value for dim in made.graph.input[0].type.tensor_type.shape.dim]
    assert shape == [1, 1, 1]
    assert fails(made)


def told(model: onnx.ModelProto) -> str:
    """Return the inputs, outputs, operators and weights of a model."""

    def said(infos: Iterable[onnx.ValueInfoProto]) -> str:
        return " ".join(
            f"{each.name}[{','.join(str(dim.dim_param or dim.dim_value) for dim in shape)}]"
            for each in infos for shape in [each.type.tensor_type.shape.dim]
        )  # fmt: skip

    graph = model.graph
    weights = [
        f"; {each.name}{list(each.dims)} {onnx.numpy_helper.to_array(each).ravel()[:4].tolist()}"
        for each in graph.initializer
    ]
    head = f"{said(graph.input)} -> {said(graph.output)}: {' '.join(ops(model))}"
    return "".join([head, *weights])


def test_what_is_left_of_models() -> None:
    many = ", ".join(
        f"{kind}[{count}] {name} = {{{','.join(map(str, range(count)))}}}"
        for kind, name, count in (("float", "k", 65), ("float", "l", 64), ("int64", "i", 17))
    )
    sizes = [[65], [64], [17]]
    three = """(float[4,6] x) => (float[4,6] y, float[4,6] z, float[4,6] v) {
        a = Neg(x)  y = Abs(a)  z = Exp(a)  v = Sin(x) }"""
    two = "(float[4,6] x) => (float[4,6] y, float[4,6] z) { y = Abs(x)  z = Exp(x) }"
    cases: tuple[tuple[str, Callable[[onnx.ModelProto], bool], str, int, int], ...] = (
        (three, lambda m: {"Abs", "Sin"} <= set(ops(m)),
         "x[1,1] a[1,1] -> y[1,1] v[1,1]: Abs Sin", 18, 4),
        (two, lambda m: "Exp" in ops(m), "x[1,1] -> z[1,1]: Exp", 5, 3),
        (two, lambda m: len(m.graph.output) == 2, "x[1,1] -> y[1,1] z[1,1]: Abs Exp", 9, 2),
        ("(float[4,6] x) => (float[4,6] y) { y = Abs(x) }",
         lambda m: m.graph.input[0].type.tensor_type.shape.dim[1].dim_value > 2,
         "x[1,3] -> y[1,3]: Abs", 7, 2),
        ("""(float[4,12] x) => (float[4,12] y) <int64[2] s = {4,12},
            float[12] k = {0,1,2,3,4,5,6,7,8,9,10,11}> { a = Reshape(x, s)  y = Add(a, k) }""",
         lambda m: ops(m) == ["Reshape", "Add"],
         "x[1,1] -> y[1,1]: Reshape Add; s[2] [1, 1]; k[1] [0.0]", 5, 2),
        ("""(float[4,12] x) => (float[4,12] y) { s = Constant<value=int64[2] {4,12}>()
            a = Reshape(x, s)  t = Constant<value_float=4.0>()  y = Add(a, t) }""",
         lambda m: {"Reshape", "Add"} <= set(ops(m)), "x[1,1] s[1] t[] -> y[1,1]: Reshape Add",
         18, 5),
        ("""(string[4] x) => (string[4] y) <string[4] s = {"a","b","c","d"}> {
            a = Identity(s)  y = StringConcat(a, x) }""", lambda m: "Identity" in ops(m),
         " -> a[1]: Identity; s[4] ['a', 'b', 'c', 'd']", 3, 2),
        (f"(float[65] x) => (float[65] y) <{many}> {{ y = own.Op(x, k, l, i) }}",
         lambda m: [list(each.dims) for each in m.graph.initializer] == sizes,
         "x[65] -> y[65]: Op; k[65] [1.0, 1.0, 1.0, 1.0]; l[64] [0.0, 1.0, 2.0, 3.0]; "
         "i[17] [0, 1, 2, 3]", 11, 1),
        ("""(float[4,8] x) => (float[4,8] y) <int64 n = {4}, int32[2,1] w = {4,8},
            int64[2] s = {8,16}> { y = own.Op(x, n, w, s) }""", lambda m: "Op" in ops(m),
         "x[1,1] -> y[1,1]: Op; n[] [1]; w[1, 1] [4]; s[2] [1, 16]", 4, 3),
        ("(float[N,3] x) => (float[N,3] y) { y = Abs(x) }", lambda m: True,
         "x[N,1] -> y[N,1]: Abs", 2, 1),
    )  # fmt: skip
    for text, fails, expected, asked, said in cases:
        questions: list[onnx.ModelProto] = []
        steps: list[str] = []

        def is_failing(
            model: onnx.ModelProto,
            fails: Callable[[onnx.ModelProto], bool] = fails,
            questions: list[onnx.ModelProto] = questions,
        ) -> bool:
            questions.append(model)
            return fails(model)

        assert told(reduce_model(parse(text), is_failing, steps.append)) == expected
        assert (len(questions), len(steps)) == (asked, said), text
