"""Each known deviation of onnxruntime, shown on the smallest model that has it."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser

from tiered.runtime import Session, run, run_reference
from tiered.runtime.compare.outputs import compare
from tiered.runtime.compare.tensors import OutputDifference
from tiered.runtime.deviations import DEVIATIONS, NEWEST, explaining, installed

INT_MAX = 2**63 - 1
SHOWN: dict[str, tuple[str, dict[str, Any]]] = {
    "where_negative_zero": (
        "g (bool[1] c, float[1] x) => (float[1] y) { y = Where(c, x, x) }",
        {"c": np.array([True]), "x": np.float32([-0.0])},  # type: ignore[arg-type]  # an array
    ),
    "extremum_of_zeros": (
        "g (float[2] a, float[2] b) => (float[2] y) { y = Max(a, b) }",
        {"a": np.array([0.0, -0.0], "f"), "b": np.array([-0.0, 0.0], "f")},
    ),
    "extremum_of_large_integers": (
        "g (int64[3] a, int64[3] b) => (int64[3] y) { y = Max(a, b) }",
        {"a": np.array([2**31, 2, 7]), "b": np.array([1, -(2**31), -3])},
    ),
    "reduce_of_nothing": (
        "g (float[3,0] x) => (float[N] y) <int64[1] a = {-1}> { y = ReduceSum<keepdims=0>(x, a) }",
        {"x": np.zeros((3, 0), "f")},
    ),
    "reduce_of_large_integers": (
        "g (int64[2] x) => (int64[1] y) <int64[1] a = {0}> { y = ReduceSum(x, a) }",
        {"x": np.array([2**62 - 4, 2])},
    ),
    "slice_backwards_to_the_largest_end": (
        f"""g (float[4] x) => (float[N] y) <int64[1] s = {{-1}}, int64[1] e = {{{INT_MAX}}},
            int64[1] a = {{0}}> {{ y = Slice(x, s, e, a, s) }}""",
        {"x": np.arange(4, dtype="f")},
    ),
    "clip_without_bound": (
        "g (float[2] x) => (float[2] y) { y = Clip(x) }",
        {"x": np.array([np.inf, -np.inf], "f")},
    ),
    "max_pool_of_nan": (
        """g (float[1,1,2,2] x) => (float[1,1,3,3] y) {
            y = MaxPool<kernel_shape = [2,2], pads = [1,1,1,1]>(x) }""",
        {"x": np.array([[[[np.nan, 1], [2, 3]]]], "f")},
    ),
    "lowest_number_of_causal_masks": (
        """g (float[1,1,2,2] q, float[1,1,2,3] m, float[1,1,1,2] c) =>
            (float[1,1,2,2] y, float[1,1,2,3] s) {
            y, p, v, s = Attention<is_causal = 1, qk_matmul_output_mode = 2>(q, q, q, m, c, c) }""",
        {
            "q": np.ones((1, 1, 2, 2), "f"),
            "m": np.ones((1, 1, 2, 3), "f"),
            "c": np.ones((1, 1, 1, 2), "f"),
        },
    ),
    "halves_kept_wide": (
        "g (float[2] x) => (float[2] y) { a = Cast<to=10>(x)  b = Neg(a)  y = Cast<to=1>(b) }",
        {"x": np.array([1e6, 0.1], "f")},
    ),
    "transpose_into_product_with_vector": (
        """g (double[3,4] x, double[3] v) => (double[4] y) {
            t = Transpose<perm = [1,0]>(x)  y = MatMul(t, v) }""",
        {"x": np.arange(12.0).reshape(3, 4), "v": np.array([1.0, 10, 100])},
    ),
}


def model(text: str) -> onnx.ModelProto:
    opset = 23 if "Attention" in text else 21
    return parser.parse_model(f'<ir_version: 10, opset_import: ["": {opset}]> {text}')


@pytest.mark.parametrize("name", SHOWN)
def test_onnxruntime_deviates(name: str) -> None:
    text, feeds = SHOWN[name]
    (known,) = (deviation for deviation in DEVIATIONS if deviation.name == name)
    setting = known.settings[0]
    ran = Session(model(text), setting=setting).run(feeds)
    found = compare(run_reference(model(text), feeds), ran)
    if not known.is_of(installed()):
        assert found.ok
    elif found.ok and installed() > NEWEST:
        pytest.skip("this onnxruntime is newer than what is known of it")
    else:
        wrong = [each for each in found.outputs if not each.ok]
        explained = explaining([model(text)], wrong, setting)
        assert [deviation.name for deviation in explained] == [name]


def test_a_pad_is_that_of_max_pool_by_definition_where_nan_is_all_there_is() -> None:
    head, pool = "g (float[1,1,2,2] x) => (float[1,1,3,3] y)", "y = MaxPool<kernel_shape = [2,2]"
    apart = model(f"""{head} <int64[8] p = {{0,0,1,1,0,0,1,1}}> {{
        u = Relu(x)  t = Pad(u, p)  {pool}>(t) }}""")
    fused = model(f"{head} {{ u = Relu(x)  {pool}, pads = [1,1,1,1]>(u) }}")
    feeds = {"x": np.array([[[[1, 2], [3, np.nan]]]], "f")}
    found = compare(run(apart, feeds), run(fused, feeds))
    if not found.ok:
        wrong = [each for each in found.outputs if not each.ok]
        assert [known.name for known in explaining([apart, fused], wrong)] == ["max_pool_of_nan"]
    outputs = run_reference(apart, feeds), run_reference(fused, feeds)
    assert compare(*outputs).ok
    assert np.isnan(outputs[0]["y"]).sum() == 4


def test_pow_rounds_by_the_shape_of_its_input() -> None:
    text = "g (float[N,M] x) => (float[N,M] y) <float e = {3.1}> { y = Pow(x, e) }"
    x = np.linspace(0.1, 5, 1000, dtype="f")
    row, column = (run(model(text), {"x": x.reshape(shape)})["y"] for shape in ((1, -1), (-1, 1)))
    found = compare({"y": row.reshape(-1)}, {"y": column.reshape(-1)})
    if not found.ok:  # processors without wide registers round both alike
        (known,) = explaining([model(text)], found.outputs)
        assert known.name == "pow_of_columns"


def test_kernels_of_other_opsets_round_differently() -> None:
    text = """g (float[1,3,32,32] x) => (float[1,3,31,31] y) {
        y = AveragePool<kernel_shape = [2, 2]>(x) }"""
    newer = model(text)
    older = onnx.ModelProto()
    older.CopyFrom(newer)
    older.opset_import[0].version = 18
    x = np.random.default_rng(0).standard_normal((1, 3, 32, 32)).astype(np.float32)
    found = compare(Session(older).run({"x": x}), Session(newer).run({"x": x}))
    assert not found.ok or installed() > NEWEST
    if not found.ok:
        (known,) = explaining([newer], found.outputs)
        assert known.name == "kernels_by_opset"


def recurrent(weights: str) -> onnx.ModelProto:
    """Return a model of an LSTM, with its weights constant or computed from constants."""
    made = model("""g (float[s,b,32] x) => (float[s,1,b,64] y) {
        w = Identity(w0)  r = Identity(r0)  y = LSTM<hidden_size = 64>(x, w, r) }""")
    random = np.random.default_rng(0)
    for name, columns in (("w", 32), ("r", 64)):
        array = random.standard_normal((1, 256, columns)).astype(np.float32) * np.float32(0.3)
        made.graph.initializer.append(onnx.numpy_helper.from_array(array, f"{name}0"))
    if weights == "constant":
        del made.graph.node[:2]
        made.graph.node[0].input[:] = ["x", "w0", "r0"]
    return made


Outputs = dict[str, Any]


def by_threads(threads: int, batch: int, **options: Any) -> tuple[Outputs, Outputs]:
    """Return the results with computed and with constant weights, both with some threads."""
    x = np.random.default_rng(1).standard_normal((5, batch, 32)).astype(np.float32)
    computed, constant = (
        Session(recurrent(weights), threads=threads, **options).run({"x": x})
        for weights in ("computed", "constant")
    )
    return computed, constant


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_unpacked_weights_are_the_same_for_any_number_of_threads(threads: int) -> None:
    for batch in (1, 2, 3):
        assert compare(*by_threads(threads, batch)).ok


def test_packed_weights_sum_in_another_order() -> None:
    found = compare(*by_threads(1, 1, setting="unoptimised"))
    if not found.ok:  # some processors add up both alike
        both = [recurrent("computed"), recurrent("constant")]
        (known,) = explaining(both, found.outputs, "unoptimised")
        assert known.name == "packed_constants"
        assert not explaining(both, found.outputs)


def test_the_rows_of_a_thread_make_a_recurrent_layer_depend_on_their_number() -> None:
    one, two = (by_threads(threads, 2)[0] for threads in (1, 2))
    found = compare(one, two)
    if not found.ok:  # with one row, where each thread has one
        (known,) = explaining([recurrent("computed")], found.outputs, "default")
        assert known.name == "packed_constants"


def test_every_deviation_is_shown() -> None:
    others = {"pow_of_columns", "packed_constants", "kernels_by_opset"}
    assert {each.name for each in DEVIATIONS} == {*SHOWN, *others}


def test_a_transpose_is_suspicious_only_beside_what_may_be_a_vector() -> None:
    (known,) = (d for d in DEVIATIONS if d.name == "transpose_into_product_with_vector")
    vector = SHOWN[known.name][0]
    assert known.applies(model(vector))
    assert not known.applies(model(vector.replace("double[3] v", "double[3,2] v")))
    assert not known.applies(model(vector.replace("MatMul(t, v)", "MatMul(v, t)")))
    assert not known.applies(model(vector.replace("MatMul(t, v)", "Mul(t, v)")))


def test_halves_of_constant_nodes_count() -> None:
    text = """g () => (double[1] y) { c = Constant<value = float16[1] {48128}>()
        d = LeakyRelu(c)  y = Cast<to=11>(d) }"""
    rounding = OutputDifference("y", False, 1e-6, max_ulp=10**9, reason="1 of 1 elements differ")
    assert [each.name for each in explaining([model(text)], [rounding])] == ["halves_kept_wide"]


def test_an_unknown_difference_is_not_explained() -> None:
    where = model(SHOWN["where_negative_zero"][0])
    zero = OutputDifference("y", False, reason="1 of 2 elements differ in the sign of zero")
    other = OutputDifference("y", False, 1.0, max_ulp=99, reason="1 of 2 elements differ")
    assert explaining([where], [zero])
    assert not explaining([where], [zero, other])
    assert not explaining([model(SHOWN["clip_without_bound"][0])], [other])


def test_a_last_digit_explains_no_large_number_in_the_place_of_0() -> None:
    reduction = model(SHOWN["reduce_of_large_integers"][0])
    expected, digit, wrong = (np.array([2**62, last]) for last in (0, 0, 12345))
    digit[0] = wrong[0] = 2**62 + 2**9
    assert explaining([reduction], compare({"y": expected}, {"y": digit}).outputs)
    assert not explaining([reduction], compare({"y": expected}, {"y": wrong}).outputs)


def test_nodes_of_bodies_and_functions_count() -> None:
    text = """<ir_version: 10, opset_import: ["": 21, "f": 1]>
        g (bool c, float[1] x) => (float[1] y) {
          y = If(c) <then_branch = t () => (float[1] a) { a = f.own(x) },
                     else_branch = e () => (float[1] b) { b = Identity(x) }> }
        <domain: "f", opset_import: ["": 21]> own (x) => (y) { y = Clip(x) }"""
    infinite = OutputDifference("y", False, float("inf"), reason="1 of 1 elements differ")
    assert explaining([parser.parse_model(text)], [infinite])


FEW_ULP, NEAR, DIGIT, HUGE = 8, 1e-6, 2.0**-52, 3e38
NAMED = {each.name: each for each in DEVIATIONS}
INF = float("inf")


@pytest.mark.parametrize(
    ("name", "held", "expected"),
    [
        ("pow_of_columns", {"max_ulp": FEW_ULP}, True),
        ("pow_of_columns", {"max_ulp": FEW_ULP + 1}, False),
        ("pow_of_columns", {}, False),
        ("pow_of_columns", {"max_ulp": 1, "nan_mismatch": 1}, False),
        ("reduce_of_large_integers", {"max_rel": DIGIT, "max_abs": 2.0**63 * DIGIT}, True),
        ("reduce_of_large_integers", {"max_rel": DIGIT, "max_abs": 2.0**64 * DIGIT}, False),
        ("reduce_of_large_integers", {"max_rel": 2 * DIGIT, "max_abs": 1.0}, False),
        ("reduce_of_large_integers", {"max_rel": 0.0, "max_abs": 1.0}, False),
        ("reduce_of_large_integers", {"max_rel": DIGIT, "max_ulp": 1}, False),
        ("extremum_of_large_integers", {}, True),
        ("extremum_of_large_integers", {"max_ulp": 1}, False),
        ("extremum_of_large_integers", {"reason": "shape [1] became [2]"}, False),
        ("clip_without_bound", {"max_abs": INF}, True),
        ("clip_without_bound", {"max_abs": INF, "nan_mismatch": 1}, False),
        ("clip_without_bound", {"max_abs": 1.0}, False),
        ("max_pool_of_nan", {"max_ulp": 1, "nan_mismatch": 1}, True),
        ("max_pool_of_nan", {"max_ulp": 1, "max_abs": 2 * HUGE}, True),
        ("max_pool_of_nan", {"max_ulp": 1, "max_abs": HUGE}, False),
        ("max_pool_of_nan", {"nan_mismatch": 1}, False),
        ("kernels_by_opset", {"cosine": 1 - NEAR}, True),
        ("kernels_by_opset", {"cosine": 1 - 2 * NEAR}, False),
        ("kernels_by_opset", {}, False),
        ("kernels_by_opset", {"cosine": 1.0, "nan_mismatch": 1}, False),
        ("kernels_by_opset", {"cosine": 1.0, "max_abs": INF}, False),
    ],
)
def test_a_deviation_explains_differences_of_its_kind(
    name: str, held: dict[str, Any], expected: bool
) -> None:
    found = OutputDifference("y", False, **{"reason": "other", **held})
    assert NAMED[name].explains(found) is expected


ATTENTION = "y, , , s = Attention<is_causal = 1>(x, x, x, x)"


@pytest.mark.parametrize(
    ("name", "nodes", "expected"),
    [
        ("where_negative_zero", "y = Where(c, x, x)", True),
        ("where_negative_zero", "y = vendor.Where(c, x, x)", False),
        ("lowest_number_of_causal_masks", ATTENTION, True),
        ("lowest_number_of_causal_masks", ATTENTION.replace("Att", "vendor.Att"), False),
        ("lowest_number_of_causal_masks", ATTENTION.replace("x, x)", "x, )"), False),
        ("lowest_number_of_causal_masks", ATTENTION.replace("x, x, x, x)", "x, x, x)"), False),
        ("lowest_number_of_causal_masks", ATTENTION.replace("y, , , s", "y, , , "), False),
        ("lowest_number_of_causal_masks", ATTENTION.replace("y, , , s", "y, p, v"), False),
        ("lowest_number_of_causal_masks", ATTENTION.replace("y, , , s", "y, p, v, , s"), False),
        ("lowest_number_of_causal_masks", ATTENTION.replace("x, x)", "x, , x)"), False),
        ("lowest_number_of_causal_masks", ATTENTION.replace("Attention", "Other"), False),
        ("lowest_number_of_causal_masks", ATTENTION.replace("is_causal = 1", "is_causal = 0"),
         False),
        ("lowest_number_of_causal_masks", ATTENTION.replace("is_causal", "softmax_precision"),
         False),
        ("transpose_into_product_with_vector", "t = Transpose(x)  y = MatMul(t, v)", True),
        ("transpose_into_product_with_vector", "t = Transpose(x)  y = MatMul(t, x)", False),
        ("transpose_into_product_with_vector", "t = Transpose(x)  n = Neg(v)  y = MatMul(t, n)",
         True),
        ("transpose_into_product_with_vector", "t = Transpose(x)  y = vendor.MatMul(t, v)", False),
        ("halves_kept_wide", "y = Neg(x)", False),
        ("halves_kept_wide", "h = Cast<to = 10>(x)  y = Cast<to = 1>(h)", True),
        ("halves_kept_wide", "h = EyeLike<dtype = 10>(x)  y = Cast<to = 1>(h)", True),
        ("halves_kept_wide", "y = Softmax<axis = 10>(x)", False),
        ("halves_kept_wide", "d = Cast<to = 11>(x)  y = Cast<to = 1>(d)", False),
        ("halves_kept_wide", "y = Identity(h)", True),
    ],
)  # fmt: skip
def test_a_model_may_show_a_deviation_by_its_operators(
    name: str, nodes: str, expected: bool
) -> None:
    half = ", float16[2] h" if "(h)" in nodes and "Cast" not in nodes else ""
    proto = parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 24, "vendor": 1]> g
        (float[2,2] x, float[2] v, bool[2] c{half}) => (float[N] y) {{ {nodes} }}"""
    )
    assert NAMED[name].applies(proto) is expected


def test_a_mended_deviation_is_one_of_older_versions() -> None:
    mended, other = NAMED["reduce_of_nothing"], NAMED["pow_of_columns"]
    assert [mended.is_of(version) for version in ((1, 31), (1, 32), (2, 0))] == [True, False, False]
    assert other.is_of((9, 9))
