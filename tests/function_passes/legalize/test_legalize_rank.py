import numpy as np
import pytest

from tests.targets.test_backend import backend
from tiered import PassContext, get_pass, pipeline_for
from tiered.graph import Model
from tiered.graph.queries.op_traits import ARG_REDUCTIONS, SOFTMAXES
from tiered.runtime import Session
from tiered.testing import assert_rewrites, assert_unchanged, parse

NAME = "legalize_rank"


def lowers(before: str, after: str) -> None:
    assert_rewrites(NAME, before, after, max_rank=4)


def test_a_window_partition_is_a_transpose_of_four_axes() -> None:
    lowers(
        "(float[2,8,8,3] x) => (float[8,16,3] y)"
        " <int64[6] s = {2,2,4,2,4,3}, int64[3] t = {8,16,3}>"
        " { r = Reshape(x, s) p = Transpose<perm=[0,1,3,2,4,5]>(r) y = Reshape(p, t) }",
        "(float[2,8,8,3] x) => (float[8,16,3] y)"
        " <int64[4] s = {4,4,2,12}, int64[3] t = {8,16,3}>"
        " { r = Reshape(x, s) p = Transpose<perm=[0,2,1,3]>(r) y = Reshape(p, t) }",
    )


def test_axes_that_do_not_merge_are_exchanged_in_turn() -> None:
    lowers(
        "(float[2,5,24] x) => (float[24,5,2] y)"
        " <int64[5] s = {2,5,3,2,4}, int64[3] t = {24,5,2}>"
        " { r = Reshape(x, s) p = Transpose<perm=[2,0,3,1,4]>(r) y = Reshape(p, t) }",
        "(float[2,5,24] x) => (float[24,5,2] y)"
        " <int64[3] s = {10,3,8}, int64[4] u = {6,5,2,4}, int64[3] t = {24,5,2}>"
        " { r = Reshape(x, s) p = Transpose<perm=[1,0,2]>(r) q = Reshape(p, u)"
        " w = Transpose<perm=[0,2,1,3]>(q) y = Reshape(w, t) }",
    )


def test_heads_are_repeated_in_three_axes() -> None:
    lowers(
        "(float[2,2,8,4] x) => (float[2,6,8,4] y)"
        " <int64[1] a = {2}, int64[5] s = {2,2,3,8,4}, int64[4] t = {2,6,8,4}>"
        " { u = Unsqueeze(x, a) e = Expand(u, s) y = Reshape(e, t) }",
        "(float[2,2,8,4] x) => (float[2,6,8,4] y)"
        " <int64[3] a = {4,1,32}, int64[3] s = {4,3,32}, int64[4] t = {2,6,8,4}>"
        " { u = Reshape(x, a) e = Expand(u, s) y = Reshape(e, t) }",
    )


def test_elementwise_operators_broadcast_over_merged_axes() -> None:
    lowers(
        "(float[6,4,4] x) => (float[6,16] y) <float[1,3,1,2,2] m = {1,2,3,4,5,6,7,8,9,10,11,12},"
        " int64[5] s = {2,3,4,2,2}, int64[2] t = {6,16}>"
        " { r = Reshape(x, s) a = Add(r, m) b = Tanh(a) y = Reshape(b, t) }",
        "(float[6,4,4] x) => (float[6,16] y) <float[1,3,1,4] m = {1,2,3,4,5,6,7,8,9,10,11,12},"
        " int64[4] s = {2,3,4,4}, int64[1] u = {96}, int64[2] t = {6,16}>"
        " { r = Reshape(x, s) a = Add(r, m) v = Reshape(a, u) b = Tanh(v) y = Reshape(b, t) }",
    )


def test_parts_are_cut_and_joined_along_one_of_three_axes() -> None:
    lowers(
        "(float[2,6,4] x, float[2,6,4] z) => (float[2,2,3,8] y)"
        " <int64[5] s = {2,2,3,2,2}, int64[4] t = {2,2,3,8}>"
        " { r = Reshape(x, s) v = Reshape(z, s) c = Concat<axis=3>(r, v) y = Reshape(c, t) }",
        "(float[2,6,4] x, float[2,6,4] z) => (float[2,2,3,8] y)"
        " <int64[3] s = {12,2,2}, int64[3] w = {12,2,2}, int64[4] t = {2,2,3,8}>"
        " { r = Reshape(x, s) v = Reshape(z, w) c = Concat<axis=1>(r, v) y = Reshape(c, t) }",
    )
    lowers(
        "(float[4,6,5] x) => (float[4,6] y, float[4,6,4] z) <int64[5] s = {2,2,3,2,5},"
        " int64[2] k = {1,4}, int64[2] t = {4,6}, int64[3] w = {4,6,4}>"
        " { r = Reshape(x, s) a, b = Split<axis=4>(r, k) y = Reshape(a, t) z = Reshape(b, w) }",
        "(float[4,6,5] x) => (float[4,6] y, float[4,6,4] z) <int64[3] s = {24,5,1},"
        " int64[2] k = {1,4}, int64[2] t = {4,6}, int64[3] w = {4,6,4}>"
        " { r = Reshape(x, s) a, b = Split<axis=1>(r, k) y = Reshape(a, t) z = Reshape(b, w) }",
    )


def test_indices_are_looked_up_in_a_row() -> None:
    lowers(
        "(float[8,3] x) => (float[2,1,1,6] y) <int64[2,1,1,2] i = {7,-1,0,3}, int64[4] t = {2,1,1,6}>"
        " { g = Gather(x, i) y = Reshape(g, t) }",
        "(float[8,3] x) => (float[2,1,1,6] y) <int64[4] i = {7,-1,0,3}, int64[3] s = {1,8,3},"
        " int64[4] t = {2,1,1,6}>"
        " { r = Reshape(x, s) g = Gather<axis=1>(r, i) y = Reshape(g, t) }",
    )
    lowers(
        "(float[8,3] x) => (float[2,1,1,1] y) <int64[2,1,1,1,2] i = {7,-1,0,2}>"
        " { y = GatherND(x, i) }",
        "(float[8,3] x) => (float[2,1,1,1] y) <int64[2,2] i = {7,-1,0,2}, int64[4] t = {2,1,1,1}>"
        " { g = GatherND(x, i) y = Reshape(g, t) }",
    )


RESHAPED = "<int64[5] s = {2,2,2,2,2}, int64[2] t = {8,4}>"


def declines(text: str, because: str, max_rank: int = 4) -> None:
    assert_unchanged(NAME, text, because=because, max_rank=max_rank)


def test_an_operator_without_a_rule_keeps_its_neighbours() -> None:
    declines(
        f"(float[32] x) => (float[8,4] y) {RESHAPED}"
        " { r = Reshape(x, s) c = Trilu(r) y = Reshape(c, t) }",
        because="Trilu has no rule for lower ranks",
    )


def test_axes_that_are_no_neighbours_stay() -> None:
    shapes = RESHAPED.replace("<", "<int64[2] ends = {0,4}, int64[2] u = {2,4}, ", 1)
    declines(
        f"(float[32] x) => (float[2,4] y) {shapes}"
        " { r = Reshape(x, s) c = ReduceMax(r, ends) y = Reshape(c, u) }",
        because="the axes that it combines are no neighbours",
    )


def test_indices_of_a_part_of_several_axes_stay() -> None:
    shapes = RESHAPED.replace("<", "<int64[2] u = {2,4}, int64[5] v = {2,2,2,1,1}, ", 1)
    declines(
        f"(float[32] x, int64[2,4] i) => (float[2,4] y) {shapes}"
        " { r = Reshape(x, s) j = Reshape(i, v) c = GatherElements<axis=3>(r, j) y = Reshape(c, u) }",
        because="it combines several axes",
    )


def test_a_sum_along_an_axis_that_is_not_known_stays() -> None:
    declines(
        f"(float[32] x, int64 at) => (float[8,4] y) {RESHAPED}"
        " { r = Reshape(x, s) c = CumSum(r, at) y = Reshape(c, t) }",
        because="its axis is not constant",
    )


def test_a_softmax_of_several_axes_stays() -> None:
    header = '<ir_version: 7, opset_import: ["": 11]> g '
    declines(
        f"{header}(float[32] x) => (float[8,4] y) {RESHAPED}"
        " { r = Reshape(x, s) c = Softmax<axis=3>(r) y = Reshape(c, t) }",
        because="Softmax has no rule for lower ranks",
    )


WIDE = """(float[2,21,10] x) => (KIND[] y) <int64[5] s = {2,3,7,2,5}, int64[1] flat = {-1},
    int64[1] k = {2}, int64 two = {2}, int64[2] some = {2,3}>
    { r = Reshape(x, s) LINE y = Reshape(c, flat) }"""


@pytest.mark.parametrize(
    "line",
    [
        *(f"c = {each}<axis={axis}>(r)" for each in SOFTMAXES for axis in (0, 2, -1)),
        *(f"c = {each}<axis=2, keepdims={keep}>(r)" for each in ARG_REDUCTIONS for keep in (0, 1)),
        *(f"c = {each}<keepdims={keep}>(r, some)"
          for each in ("ReduceMax", "ReduceMin") for keep in (0, 1)),
        "c, i = TopK<axis=2>(r, k)",
        "c = CumSum<reverse=1>(r, two)",
        "i = ArgMin<axis=2>(r) c = GatherElements<axis=2>(r, i)",
        "i = ArgMin<axis=2>(r) u = ReduceMax(r, k) c = ScatterElements<axis=2>(r, i, u)",
        "low = Constant<value_float=0.3>() c = Clip(r, low)",
        "c, m = Dropout(r)",
        "i = CastLike(two, r) c = CastLike(r, i)",
        "m = ReduceMax(r, k) c = PRelu(r, m)",
        "m = ReduceMax(r, k) c = Mod<fmod=1>(r, m)",
        "m = ReduceMax(r, k) c = Mean(r, m, r)",
    ],
)  # fmt: skip
def test_the_results_are_the_same_in_four_axes(line: str) -> None:
    kind = "int64" if line.startswith("c = Arg") else "float"
    model = Model.from_proto(parse(WIDE.replace("LINE", line).replace("KIND", kind)))
    before = Session(model.to_proto())
    get_pass(NAME, max_rank=4)(model)
    model.check_view()
    assert max(value.rank or 0 for node in model.main.nodes for value in node.outputs if value) <= 4
    x = np.random.default_rng(0).normal(size=(2, 21, 10)).astype(np.float32)
    found, wanted = Session(model.to_proto()).run({"x": x}), before.run({"x": x})
    assert found["y"].tobytes() == wanted["y"].tobytes()


def test_the_interface_stays() -> None:
    declines(
        f"(float[2,2,2,2,2] x) => (float[8,4] y) {RESHAPED} {{ y = Reshape(x, t) }}",
        because="an input of the graph has rank 5",
    )
    declines(
        f"(float[32] x) => (float[2,2,2,2,2] y) {RESHAPED} {{ y = Reshape(x, s) }}",
        because="a result of the graph has rank 5",
    )


def test_symbolic_dims_stay() -> None:
    declines(
        "(float[N,4] x) => (float[N,4] y) <int64[5] s = {-1,1,2,1,2}, int64[2] t = {-1,4}>"
        " { r = Reshape(x, s) c = Neg(r) y = Reshape(c, t) }",
        because="the dims are not numbers",
    )


def test_empty_tensors_stay() -> None:
    declines(
        "(float[0,4] x) => (float[0,4] y) <int64[5] s = {0,1,2,1,2}, int64[2] t = {0,4}>"
        " { r = Reshape(x, s) c = Neg(r) y = Reshape(c, t) }",
        because="a tensor is empty",
    )


def test_a_body_that_reads_the_tensor_stops_it() -> None:
    declines(
        f"(float[32] x, bool b) => (float[8,4] y) {RESHAPED} {{ r = Reshape(x, s) y = If(b) <"
        "then_branch = g1 () => (float[8,4] u) { u = Reshape(r, t) },"
        " else_branch = g2 () => (float[8,4] v) { n = Neg(r) v = Reshape(n, t) }> }",
        because="a body reads a tensor of rank 5",
    )


def test_axes_that_alternate_do_not_merge() -> None:
    declines(
        "(float[32] x, float[2,1,2,1,2] z) => (float[8,4] y) "
        "<int64[5] s = {1,2,1,2,1}, int64[5] w = {2,2,2,2,2}, int64[2] t = {8,4}, int64[1] k = {4},"
        " int64[1] a = {0}, int64[5] q = {2,1,2,1,2}, int64[1] e = {8}>"
        " { p = Slice(x, a, k) r = Reshape(p, s) o = Slice(x, a, e) u = Reshape(o, q)"
        " c = Add(r, u) y = Reshape(c, t) }",
        because="the axes do not merge to rank 4",
    )
    declines(
        "(float[8] x) => (float[8,4] y) "
        "<int64[5] s = {2,1,2,1,2}, int64[5] w = {2,2,2,2,2}, int64[2] t = {8,4}>"
        " { r = Reshape(x, s) c = Expand(r, w) y = Reshape(c, t) }",
        because="the axes do not merge to rank 4",
    )


def test_a_part_without_a_name_stays() -> None:
    text = (
        "(float[32] x) => (float[8,2] y) <int64[5] s = {2,2,2,2,2}, int64[2] t = {8,2}>"
        " { r = Reshape(x, s) a, b = Split<axis=4, num_outputs=2>(r) y = Reshape(a, t) }"
    )
    model = parse(text)
    model.graph.node[1].output[1] = ""
    assert_unchanged(NAME, model, because="a result is not named", max_rank=4)


def test_a_target_of_three_axes_stays() -> None:
    declines(
        f"(float[32] x) => (float[8,4] y) {RESHAPED} {{ r = Reshape(x, s) y = Reshape(r, t) }}",
        because="the highest rank is 3, under 4",
        max_rank=3,
    )


def test_gathernd_with_batches_stays() -> None:
    declines(
        "(float[2,3] x) => (float[2,1,1] y) <int64[2,1,1,1,1] i = {1,2}, int64[3] t = {2,1,1}>"
        " { g = GatherND<batch_dims=1>(x, i) y = Reshape(g, t) }",
        because="GatherND has batch_dims, or data of rank",
    )


def test_the_backend_says_the_rank() -> None:
    target = backend('[operators]\n"Reshape, Transpose" = true', max_rank=4, shapes="static")
    model = Model.from_proto(
        parse(
            "(float[2,8,8,3] x) => (float[8,16,3] y)"
            " <int64[6] s = {2,2,4,2,4,3}, int64[3] t = {8,16,3}>"
            " { r = Reshape(x, s) p = Transpose<perm=[0,1,3,2,4,5]>(r) y = Reshape(p, t) }"
        )
    )
    assert not target.coverage(model).is_met
    with PassContext(opt_level=1, backend=target):
        pipeline_for(target)(model)
    assert target.coverage(model).is_met


def test_without_a_backend_nothing_is_asked() -> None:
    assert_unchanged(
        NAME,
        f"(float[32] x) => (float[8,4] y) {RESHAPED} {{ r = Reshape(x, s) y = Reshape(r, t) }}",
    )
