"""The batch through whole small networks: each sample is computed as by itself."""

import numpy as np
import onnx
import pytest

from tests.analysis.batching.by_sample import assert_each_by_itself, changed
from tests.small import named, parsed
from tiered import Model, ShapeError, UsageError
from tiered.analysis.batching.another_size import _is_plain, rebatch
from tiered.graph.core.interface_map import ListMap
from tiered.runtime import Session


def numbers(count: int) -> str:
    return "{" + ",".join(str(at % 7 - 3) for at in range(count)) + "}"


OF_ONE = {
    "global pool, Reshape to [-1, 6]": """(float[1,6,3,3] x) => (float[1,6] y) <int64[2] s = {-1,6}> {
        g = GlobalAveragePool(x)  r = Reshape(g, s)  y = Softmax<axis = 1>(r) }""",
    "global pool, Reshape to [1, -1]": f"""(float[1,6,3,3] x) => (float[1,2] y)
        <int64[2] s = {{1,-1}}, float[6,2] w = {numbers(12)}> {{
        g = GlobalAveragePool(x)  r = Reshape(g, s)  y = Gemm(r, w) }}""",
    "heads": """(float[1,6,8] x) => (float[1,6,8] y) <int64[4] s = {1,6,2,4}, int64[3] u = {1,6,8}> {
        h = Reshape(x, s)  t = Transpose<perm = [0,2,1,3]>(h)  p = Softmax<axis = 2>(t)
        v = Transpose<perm = [0,2,1,3]>(p)  y = Reshape(v, u) }""",
    "heads of a sequence first": f"""(float[5,1,8] x) => (float[5,1,8] y) <int64[3] s = {{5,2,4}},
        int64[2] u = {{5,8}}, int64[3] v = {{5,1,8}}, float[8,8] w = {numbers(64)}> {{
        h = Reshape(x, s)  t = Transpose<perm = [1,0,2]>(h)  k = Transpose<perm = [0,2,1]>(t)
        q = MatMul(t, k)  o = Softmax<axis = 2>(q)  c = MatMul(o, t)  d = Transpose<perm = [1,0,2]>(c)
        e = Reshape(d, u)  f = MatMul(e, w)  y = Reshape(f, v) }}""",
    "a YOLO head": """(float[1,18,2,2] x) => (float[1,12,6] y) <int64[5] s = {1,3,6,2,2}, int64[3] u = {1,12,6},
        float[1,1,2,2,2] g = {0,0,1,0,0,1,1,1}, int64[1] c = {0}, int64[1] d = {2}, int64[1] e = {6}, int64[1] a = {4}> {
        h = Reshape(x, s)  t = Transpose<perm = [0,1,3,4,2]>(h)  p = Sigmoid(t)
        q = Slice(p, c, d, a)  w = Add(q, g)  r = Slice(p, d, e, a)  z = Concat<axis = 4>(w, r)
        y = Reshape(z, u) }""",
    "windows": """(float[1,4,4,2] x) => (float[1,4,4,2] y) <int64[6] s = {1,2,2,2,2,2}, int64[3] u = {4,4,2},
        int64[6] v = {1,2,2,2,2,2}, int64[4] w = {1,4,4,2}, float[4,1,1] b = {1,2,3,4}> {
        h = Reshape(x, s)  t = Transpose<perm = [0,1,3,2,4,5]>(h)  p = Reshape(t, u)  q = Mul(p, b)
        o = Softmax<axis = 1>(q)  z = Reshape(o, v)  f = Transpose<perm = [0,1,3,2,4,5]>(z)
        y = Reshape(f, w) }""",
    "channel shuffle": """(float[1,4,2,2] x) => (float[1,4,2,2] y) <int64[5] s = {1,2,2,2,2}, int64[4] u = {1,4,2,2}> {
        h = Reshape(x, s)  t = Transpose<perm = [0,2,1,3,4]>(h)  y = Reshape(t, u) }""",
    "group norm": """(float[1,4,2,2] x) => (float[1,4,2,2] y)
        <int64[3] s = {1,2,-1}, int64[4] u = {1,4,2,2}, float[2] a = {1,1}, float[2] b = {0,0}> {
        h = Reshape(x, s)  t = InstanceNormalization(h, a, b)  y = Reshape(t, u) }""",
    "a class token": """(float[1,3,2] x) => (float[1,4,2] y) <float[1,1,2] c = {1,2}> {
        y = Concat<axis = 1>(c, x) }""",
    "sizes of a Resize": """(float[1,1,2,2] x) => (float[1,1,4,4] y) <int64[4] s = {1,1,4,4}> { y = Resize(x, , , s) }""",
    "a squeezed batch": """(float[1,3,4] x) => (float[1,3,4] y) <int64[1] m = {0}> {
        s = Squeeze(x, m)  r = Relu(s)  y = Unsqueeze(r, m) }""",
    "a Reshape in place of a Transpose": """(float[1,6,4] x) => (float[1,4,6] y) <int64[2] f = {6,4}, int64[3] u = {1,4,6}> {
        a = Reshape(x, f)  t = Transpose(a)  r = Reshape(t, u)  y = Softmax<axis = 2>(r) }""",
    "a Reshape to another axis": """(float[1,6,4] x) => (float[4,1,6] y) <int64[2] f = {6,4}, int64[3] u = {4,1,6}> {
        a = Reshape(x, f)  t = Transpose(a)  r = Reshape(t, u)  y = Softmax<axis = 2>(r) }""",
    "row numbers in an index": """(float[1,3] x) => (float[1,2,1] y)
        <int64[1] f = {-1}, int64 zero = {0}, int64 one = {1}, int64 three = {3}, int64[1] first = {0},
        int64[1,2] places = {2,0}, int64[1] a = {1}, int64[2] flat = {-1,1}> {
        s = Shape(x)  n = Gather(s, zero)  r = Range(zero, n, one)  u = Unsqueeze(r, a)
        m = Mul(u, three)  i = Add(places, m)  d = Reshape(x, flat)  y = Gather(d, i) }""",
    "a constant index of rows": """(float[1,3] x) => (float[1,1,2] y) <int64[1,1,2,2] i = {0,2,0,1}> {
        y = GatherND(x, i) }""",
}


@pytest.mark.parametrize("name", OF_ONE)
@pytest.mark.parametrize("size", [4, "N"])
def test_a_batch_of_one(name: str, size: int | str) -> None:
    axes = {"x": 1} if "sequence first" in name else None
    assert_each_by_itself(OF_ONE[name], size, axes)


RECURRENT = {
    "LSTM": (8, ", float[1,1,2] c = {0.5,-0.5}", ", c"),
    "GRU": (6, "", ""),
    "RNN": (2, "", ""),
}


@pytest.mark.parametrize("old", [1, 2])
@pytest.mark.parametrize("size", [4, "N"])
@pytest.mark.parametrize("op_type", RECURRENT)
def test_initial_states(op_type: str, size: int | str, old: int) -> None:
    gates, more, operand = RECURRENT[op_type]
    states = "{0.25,0.5" + ",0.25,0.5" * (old - 1) + "}"
    more = more.replace("[1,1,2]", f"[1,{old},2]").replace("{0.5,-0.5}", states)
    assert_each_by_itself(
        f"""(float[3,{old},2] x) => (float[3,1,{old},2] y, float[1,{old},2] h)
        <float[1,{gates},2] w = {numbers(2 * gates)}, float[1,{gates},2] r = {numbers(2 * gates)},
        float[1,{old},2] i = {states}{more}> {{
        y, h = {op_type}<hidden_size = 2>(x, w, r, , , i{operand}) }}""",
        size,
        {"x": 1},
    )


OF_TWO = {
    "heads": """(float[2,6,8] x) => (float[2,6,8] y) <int64[4] s = {2,6,2,4}, int64[3] m = {4,6,4},
        int64[4] u = {2,2,6,4}, int64[3] t = {2,6,-1}> {
        a = Reshape(x, s)  b = Transpose<perm = [0,2,1,3]>(a)  c = Reshape(b, m)  d = Softmax<axis = 1>(c)
        e = Reshape(d, u)  f = Transpose<perm = [0,2,1,3]>(e)  y = Reshape(f, t) }""",
    "equal rows of a constant": """(float[2,3] x) => (float[2,3] y) <float[2,3] p = {1,2,3,1,2,3}> { y = Add(x, p) }""",
    "an expanded token": """(float[2,3,2] x) => (float[2,4,2] y) <float[1,1,2] c = {1,2}, int64[3] s = {2,1,2}> {
        t = Expand(c, s)  y = Concat<axis = 1>(t, x) }""",
    "a folded mask": """(float[2,4] x) => (float[2,4] y)
        <int64[2] s = {4,2}, float[4,2] m = {1,2,3,4,1,2,3,4}, int64[2] u = {2,4}> {
        a = Reshape(x, s)  b = Add(a, m)  y = Reshape(b, u) }""",
    "an index of rows": """(float[2,3] x) => (float[2,2,1] y) <int64[2] s = {6,1}, int64[2,2] i = {2,0,5,3}> {
        d = Reshape(x, s)  y = Gather(d, i) }""",
    "all of a Slice": """(float[2,3] x) => (float[2,3] y) <int64[1] s = {0}, int64[1] e = {2}> { y = Slice(x, s, e) }""",
    "sizes of a Resize": """(float[2,1,2,2] x) => (float[2,1,4,4] y) <int64[4] s = {2,1,4,4}> { y = Resize(x, , , s) }""",
    "rows of positions that are taken": """(float[2,3,2] x) => (float[2,3,2] y) <int64[2,3] p = {0,2,1,0,2,1}, float[4,2] t = {1,2,3,4,5,6,7,8}> {
        g = Gather(t, p)  y = Add(x, g) }""",
    "taken along another axis": """(float[2,3,2] x) => (float[2,3,2] y) <int64[3,2] p = {0,0,2,2,1,1}, float[2,4] t = {1,2,3,4,5,6,7,8}> {
        g = Gather<axis = -1>(t, p)  h = Transpose<perm = [2,1,0]>(g)  y = Add(x, h) }""",
    "of equal rows": """(float[2,3] x) => (float[2,2] y) <int64[2] p = {2,0}, float[2,3] t = {1,2,3,1,2,3}> {
        g = Gather<axis = 1>(t, p)  h = Gather<axis = 1>(x, p)  y = Add(h, g) }""",
    "a token that is tiled": """(float[2,3,2] x) => (float[2,4,2] y) <int64[3] r = {2,1,1}, float[1,1,2] t = {1,2}> {
        e = Tile(t, r)  y = Concat<axis = 1>(e, x) }""",
}


@pytest.mark.parametrize("name", OF_TWO)
@pytest.mark.parametrize("size", [4, 3, 1, "N"])
def test_a_batch_of_two(name: str, size: int | str) -> None:
    assert_each_by_itself(OF_TWO[name], size)


BODIES = {
    "a branch without samples": """(float[1,3] x, bool c) => (float[1,3] y) <float[1,3] k = {1,2,3}> {
        y = If(c) <then_branch = t () => (float[1,3] a) { a = Relu(x) },
                   else_branch = e () => (float[1,3] b) { b = Identity(k) }> }""",
    "a baked target in a branch": """(float[1,6] x, bool c) => (float[1,2,3] y) {
        y = If(c) <then_branch = t () => (float[1,2,3] a) { s = Constant<value_ints = [1,2,3]>()  a = Reshape(x, s) },
                   else_branch = e () => (float[1,2,3] b) { s2 = Constant<value_ints = [1,2,-1]>()  b = Reshape(x, s2) }> }""",
    "a state without samples": """(float[1,3] x) => (float[1,3] y, float[3,1,3] z) <float[1,3] k = {0,0,0}, int64 n = {3}, bool c = {1}> {
        y, z = Loop(n, c, k) <body = b (int64 i, bool ci, float[1,3] s) => (bool co, float[1,3] o, float[1,3] p) {
            co = Identity(ci)  o = Add(s, x)  p = Neg(o) }> }""",
    "a Scan over time": """(float[4,1,3] x) => (float[1,3] y, float[4,1,3] z) <float[1,3] k = {0,0,0}> {
        y, z = Scan<num_scan_inputs = 1, body = b (float[1,3] s, float[1,3] e) => (float[1,3] o, float[1,3] p) {
            o = Add(s, e)  p = Tanh(o) }>(k, x) }""",
}


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("size", [4, "N"])
def test_bodies(name: str, size: int | str) -> None:
    axes = {"x": 1} if "Scan" in name else {"x": 0}
    assert_each_by_itself(BODIES[name], size, axes)


def test_a_local_function() -> None:
    model = """<ir_version: 8, opset_import: ["" : 17, "own" : 1]>
        g (float[1,6] x) => (float[1,3] y) { h = own.half(x)  y = ReduceSum<keepdims = 0>(h, a)
            a = Constant<value_ints = [1]>() }
        <domain: "own", opset_import: ["" : 17]>
        half (x) => (y) { s = Constant<value_ints = [1,2,3]>()  y = Reshape(x, s) }"""
    assert_each_by_itself(onnx.parser.parse_model(model), 4)


def test_dynamic_dims_beside_the_batch() -> None:
    """The length stays dynamic; a Reshape that infers it gets the batch in another way."""
    made, *_ = changed(
        """(float[1,S,8] x) => (float[1,S,2,4] y) <int64[4] s = {1,-1,2,4}> { y = Reshape(x, s) }""",
        "N",
    )
    assert [dim.dim_param for dim in made.graph.output[0].type.tensor_type.shape.dim[:2]] == [
        "N",
        "S",
    ]
    x = np.arange(48, dtype=np.float32).reshape(3, 2, 8)
    np.testing.assert_array_equal(Session(made).run({"x": x})["y"], x.reshape(3, 2, 2, 4))


@pytest.mark.parametrize("op_type", ["Gather", "GatherND"])
def test_a_computed_index_of_rows(op_type: str) -> None:
    """Positions of a dynamic length index the rows of one sample."""
    begin = """s = Shape(x)  n = Gather(s, one)  r = Range(zero, n, one)  u = Unsqueeze(r, front)"""
    rest = {
        "Gather": "d = Reshape(x, flat)  y = Gather(d, u)",
        "GatherND": "z = Mul(u, zero)  a = Unsqueeze(z, last)  b = Unsqueeze(u, last)  "
        "i = Concat<axis = 2>(a, b)  y = GatherND(x, i)",
    }[op_type]
    text = f"""(float[1,S] x) => (float[1,S] y) <int64 zero = {{0}}, int64 one = {{1}}, int64[1] front = {{0}},
        int64[1] flat = {{-1}}, int64[1] last = {{2}}> {{ {begin}  {rest} }}"""
    made, *_ = changed(text, "N")
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(Session(made).run({"x": x})["y"], x)


# --- the interface --------------------------------------------------------------------------------


def rebatched(text: str, size: int | str, **axes: int) -> Model:
    model = parsed(text)
    rebatch(model, {named(model, name): axis for name, axis in (axes or {"x": 0}).items()}, size)
    model.check_view(types=True)
    return model


def shapes(model: Model) -> list[list[int | str]]:
    proto = model.to_proto()
    infos = (*proto.graph.input, *proto.graph.output)
    dims = [info.type.tensor_type.shape.dim for info in infos]
    return [
        [d.dim_value if d.HasField("dim_value") else d.dim_param for d in each] for each in dims
    ]


def test_inputs_and_outputs_have_the_new_size() -> None:
    text = "(float[2,3] x, float[3,2] z, float[2] w) => (float[2,3] y) { t = Transpose(z)  y = Add(x, t) }"
    assert shapes(rebatched(text, 5, x=0, z=1)) == [[5, 3], [3, 5], [2], [5, 3]]
    assert shapes(rebatched(text, "N", x=0, z=1)) == [
        ["N", 3],
        ["N" if at else 3 for at in (0, 1)],
        [2],
        ["N", 3],
    ]


def test_an_axis_with_neighbours_is_open() -> None:
    text = "(float[2,3] x) => (float[6] y) <int64[1] s = {-1}> { y = Reshape(x, s) }"
    assert shapes(rebatched(text, "N"))[1] == [""]
    assert shapes(rebatched(text, 4))[1] == [12]


def test_dims_beside_an_open_one_are_declared() -> None:
    text = "(float[2,3,4] x) => (float[6,4] y) <int64[2] s = {-1,4}> { y = Reshape(x, s) }"
    assert shapes(rebatched(text, "N"))[1] == ["", 4]


def test_an_input_of_unknown_rank_has_no_names() -> None:
    text = "(float[2,3] x, float[] u) => (float[2,3] y, float[] v) { y = Relu(x)  v = Neg(u) }"
    assert shapes(rebatched(text, "N"))[0] == ["N", 3]


def test_the_name_of_the_new_batch_may_be_that_of_no_other_dim() -> None:
    text = "(float[2,batch] x) => (float[2,batch] y) { y = Relu(x) }"
    assert shapes(rebatched(text, 4)) == [[4, "batch"]] * 2
    assert shapes(rebatched(text, "batch_1")) == [["batch_1", "batch"]] * 2
    text = "(float[2,batch,batch_1] x) => (float[2,batch,batch_1] y) { y = Relu(x) }"
    assert shapes(rebatched(text, "N")) == [["N", "batch", "batch_1"]] * 2


@pytest.mark.parametrize("size", [0, "1N", True, "nan"])
def test_a_size_is_a_number_or_a_name(size: int | str) -> None:
    with pytest.raises(UsageError) as caught:
        rebatched("(float[2,3] x) => (float[2,3] y) { y = Relu(x) }", size)
    assert str(caught.value).startswith(
        f"change_batch: {size!r} is no size; expected a size from 1"
    )


def test_an_empty_batch_has_no_samples() -> None:
    with pytest.raises(UsageError, match="change_batch: the batch of 'x' is empty"):
        rebatched("(float[0,3] x) => (float[0,3] y) { y = Relu(x) }", 2)


@pytest.mark.parametrize(
    ("output", "nodes", "place"),
    [
        ("float[2,3] y", "y = Relu(x)", (0, 1, 1)),
        ("float[3,2] y", "y = Transpose(x)", (1, 1, 1)),
        ("float[6] y", "y = Reshape(x, s)", (0, 1, 3)),
        ("float[3] y", "y = Relu(z)", None),
    ],
)
def test_where_the_samples_are_is_noted(
    output: str, nodes: str, place: tuple[int, int, int] | None
) -> None:
    model = parsed(f"(float[2,3] x, float[3] z) => ({output}) <int64[1] s = {{-1}}> {{ {nodes} }}")
    stamp = model.journal.stamp()
    rebatch(model, {named(model, "x"): 0}, 4)
    batch = model.interface_since(stamp).batch
    assert batch is not None
    assert (batch.old, dict(batch.inputs), dict(batch.outputs)) == (2, {"x": 0}, {"y": place})


def test_a_factor_that_is_not_known_is_noted_so() -> None:
    model = parsed("(float[1,S,3] x) => (float[K,3] y) <int64[2] s = {-1,3}> { y = Reshape(x, s) }")
    stamp = model.journal.stamp()
    rebatch(model, {named(model, "x"): 0}, "N")
    batch = model.interface_since(stamp).batch
    assert batch is not None
    assert batch.outputs["y"] == (0, 1, -1)


def test_a_list_has_a_step_for_each_column() -> None:
    model = parsed(
        """(float[1,5,4] x, float[1,2,5] z) => (int64[K,3] y) <int64 m = {2}>
        { y = NonMaxSuppression(x, z, m) }"""
    )
    stamp = model.journal.stamp()
    rebatch(model, {named(model, "x"): 0, named(model, "z"): 0}, 2)
    batch = model.interface_since(stamp).batch
    assert batch is not None
    assert batch.outputs["y"] == ListMap(0, (1, 0, 0))


def test_a_model_that_is_refused_stays() -> None:
    model = parsed("(float[2,3] x) => (float[2,3] y) { a = Relu(x)  y = Softmax<axis=0>(a) }")
    before = model.to_proto().SerializeToString(deterministic=True)
    with pytest.raises(ShapeError, match="change_batch: Softmax 'y': it computes a result"):
        rebatch(model, {named(model, "x"): 0}, 4)
    assert model.to_proto().SerializeToString(deterministic=True) == before


def test_the_dims_that_may_be_written_down() -> None:
    dims = (3, "N", "unk__0", "=2*N", None)
    assert [_is_plain(dim) for dim in dims] == [True, True, False, False, False]


def test_a_list_of_what_is_found_has_any_length() -> None:
    model = parsed(
        """(float[1,20,4] b, float[1,3,20] s) => (int64[5,3] y, int64[k,3] z) <int64 m = {5}> {
        y = NonMaxSuppression(b, s, m)  z = Identity(y) }"""
    )
    rebatch(model, {named(model, "b"): 0, named(model, "s"): 0}, "N")
    infos = (*model.main.input_infos, *model.main.output_infos)
    dims = [info.type.tensor_type.shape.dim for info in infos]
    assert [[dim.dim_param or dim.dim_value for dim in each] for each in dims] == [
        ["N", 20, 4], ["N", 3, 20], [0, 3], ["k", 3],
    ]  # fmt: skip
