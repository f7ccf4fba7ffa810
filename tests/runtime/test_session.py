"""Running models: every dtype in and out, containers, and errors that say what happened."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, parser

from tiered.graph.core.dtypes import DataType
from tiered.runtime import Session, run, run_reference
from tiered.runtime.compare.outputs import compare
from tiered.runtime.session import (
    _LONGEST_WORDS,
    Reference,
    _pack,
    _plain,
    _unpack,
    _words,
    as_proto,
    label_of,
)
from tiered.support.errors import ModelError, RuntimeFailure

f32 = partial(np.array, dtype=np.float32)
f64 = partial(np.array, dtype=np.float64)
i64 = partial(np.array, dtype=np.int64)
i8 = partial(np.array, dtype=np.int8)

HEADER = '<ir_version: 11, opset_import: ["": 25, "ai.onnx.ml": 3]>'


def model(text: str) -> onnx.ModelProto:
    return parser.parse_model(f"{HEADER} {text}")


def cast_model(source: int, target: int) -> onnx.ModelProto:
    graph = helper.make_graph(
        [helper.make_node("Cast", ["x"], ["y"], to=target)],
        "cast",
        [helper.make_tensor_value_info("x", source, ["n"])],
        [helper.make_tensor_value_info("y", target, ["n"])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13)


PLAIN = {
    "FLOAT": np.float32,
    "DOUBLE": np.float64,
    "FLOAT16": np.float16,
    "INT8": np.int8,
    "INT16": np.int16,
    "INT32": np.int32,
    "INT64": np.int64,
    "UINT8": np.uint8,
    "UINT16": np.uint16,
    "UINT32": np.uint32,
    "UINT64": np.uint64,
    "BOOL": np.bool_,
}
RAW = {
    "BFLOAT16": ml_dtypes.bfloat16,
    "FLOAT8E4M3FN": ml_dtypes.float8_e4m3fn,
    "FLOAT8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "FLOAT8E5M2": ml_dtypes.float8_e5m2,
    "FLOAT8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "UINT4": ml_dtypes.uint4,
    "INT4": ml_dtypes.int4,
    "UINT2": ml_dtypes.uint2,
    "INT2": ml_dtypes.int2,
}


@pytest.mark.parametrize(("name", "dtype"), [*PLAIN.items(), *RAW.items()])
@pytest.mark.parametrize("count", [0, 1, 5, 8])
def test_every_dtype_goes_in_and_comes_out(name: str, dtype: Any, count: int) -> None:
    number = TensorProto.DataType.Value(name)
    floats = np.resize(f32([1, 0, -1, 1, 0]), count)
    if np.array([-1]).astype(dtype).astype(np.float32)[0] != -1:
        floats = np.abs(floats)
    x = floats.astype(dtype)
    out = run(cast_model(TensorProto.FLOAT, number), {"x": floats})["y"]
    assert out.dtype == x.dtype
    assert compare({"y": x}, {"y": out}).ok
    back = run(cast_model(number, TensorProto.FLOAT), {"x": x})["y"]
    np.testing.assert_array_equal(back, floats)


@pytest.mark.parametrize(
    ("name", "values"), [("INT4", range(-8, 8)), ("UINT4", range(16)), ("INT2", range(-2, 2))]
)
def test_packed_integers_keep_order_and_sign(name: str, values: range) -> None:
    number = TensorProto.DataType.Value(name)
    x = np.array(list(values)).astype(RAW[name])
    floats = run(cast_model(number, TensorProto.FLOAT), {"x": x})["y"]
    np.testing.assert_array_equal(floats, f32(list(values)))
    back = run(cast_model(TensorProto.FLOAT, number), {"x": floats})["y"]
    np.testing.assert_array_equal(back.astype(np.int8), i8(list(values)))


def test_scalars_keep_rank_zero() -> None:
    out = run(model("g (bfloat16 x) => (bfloat16 y) { y = Identity(x) }"), {"x": _bf16(1.5)})
    assert out["y"].shape == ()
    assert out["y"] == _bf16(1.5)


def _bf16(value: float) -> np.ndarray[Any, Any]:
    return np.array(value, ml_dtypes.bfloat16)


def test_returned_arrays_are_writable_and_own_their_memory() -> None:
    session = Session(model("g (bfloat16[N] x) => (bfloat16[N] y) { y = Identity(x) }"))
    first = session.run({"x": np.ones(3, ml_dtypes.bfloat16)})["y"]
    session.run({"x": np.zeros(3, ml_dtypes.bfloat16)})
    assert first.astype(np.float32).tolist() == [1, 1, 1]
    first[0] = 2


def test_inputs_that_are_views_or_byte_swapped_are_read_right() -> None:
    session = Session(model("g (float[N, M] x) => (float[N, M] y) { y = Identity(x) }"))
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(session.run({"x": x.T})["y"], x.T)
    np.testing.assert_array_equal(session.run({"x": x.astype(">f4")})["y"], x)
    bf16 = Session(model("g (bfloat16[N, M] x) => (bfloat16[N, M] y) { y = Identity(x) }"))
    y = bf16.run({"x": x.astype(ml_dtypes.bfloat16).T})["y"]
    np.testing.assert_array_equal(y.astype(np.float32), x.T)


def test_strings_of_each_kind_go_in_and_come_out_as_objects() -> None:
    session = Session(model("g (string[N] x) => (string[N] y) { y = Identity(x) }"))
    for x in (np.array(["a", "né"]), np.array(["a", "né"], object)):
        out = session.run({"x": x})["y"]
        assert out.dtype == object
        assert out.tolist() == ["a", "né"]
    encoded = np.char.encode(np.array(["a", "né"]), "utf-8")
    assert session.run({"x": encoded})["y"].tolist() == ["a", "né"]


def test_sequences_are_lists() -> None:
    text = """g (seq(float[N]) q, float[N] x) => (seq(float[N]) out, int64 n)
        { out = SequenceInsert(q, x)  n = SequenceLength(out) }"""
    out = run(model(text), {"q": [f32([1, 2])], "x": f32([3])})
    assert [a.tolist() for a in out["out"]] == [[1, 2], [3]]
    assert out["n"] == 2


def test_optionals_are_values_or_none() -> None:
    has = Session(model("g (optional(float[N]) x) => (bool y) { y = OptionalHasElement(x) }"))
    assert not has.run({"x": None})["y"]
    assert has.run({"x": f32([1])})["y"]
    none = model("g () => (optional(float[N]) y) { y = Optional<type: type_proto = float[N]>() }")
    assert run(none, {}) == {"y": None}


def test_maps_are_dicts() -> None:
    text = "g (float[1, 2] x) => (y) { y = ai.onnx.ml.ZipMap<classlabels_strings=['a', 'b']>(x) }"
    proto = model(text.replace("'", '"').replace("(y)", "(float[N] y)"))
    proto.graph.output[0].type.CopyFrom(
        helper.make_sequence_type_proto(
            helper.make_map_type_proto(
                TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, [])
            )
        )
    )
    assert run(proto, {"x": f32([[1, 2]])}) == {"y": [{"a": 1.0, "b": 2.0}]}


def test_raw_and_plain_outputs_come_in_the_models_order() -> None:
    text = """g (float[N] x) => (seq(float[N]) s, bfloat16[N] b, string[N] t, float[N] y)
        { b = Cast<to=16>(x)  t = Cast<to=8>(x)  y = Neg(x)  s = SequenceConstruct(x, y) }"""
    out = run(model(text), {"x": f32([1, 2])})
    assert list(out) == ["s", "b", "t", "y"]
    assert out["b"].dtype == ml_dtypes.bfloat16
    assert out["t"].tolist() == ["1", "2"]
    assert [a.tolist() for a in out["s"]] == [[1, 2], [-1, -2]]


def test_raw_input_beside_a_sequence_input() -> None:
    text = """g (seq(float[N]) q, bfloat16[N] x) => (seq(float[N]) out)
        { y = Cast<to=1>(x)  out = SequenceInsert(q, y) }"""
    out = run(model(text), {"q": [f32([1])], "x": np.ones(1, ml_dtypes.bfloat16)})
    assert [a.tolist() for a in out["out"]] == [[1], [1]]


def test_a_limit_of_the_runtime_api_is_an_error() -> None:
    text = "g (string[N] x, float[N] z) => (bfloat16[N] y, string[N] t) "
    proto = model(text + "{ y = Cast<to=16>(z)  t = Identity(x) }")
    with pytest.raises(RuntimeFailure, match=r"cannot feed input 'x' .*cast that output to float"):
        run(proto, {"x": np.array(["1"], object), "z": f32([1])})


def test_overridable_initializers_need_no_feed_and_take_one() -> None:
    text = "g (float[2] x, float[2] w = {1, 1}) => (float[2] y) { y = Add(x, w) }"
    session = Session(model(text))
    assert session.inputs == ("x",)
    assert session.outputs == ("y",)
    x = f32([1, 2])
    assert session.run({"x": x})["y"].tolist() == [2, 3]
    assert session.run({"x": x, "w": x})["y"].tolist() == [2, 4]


def test_no_optimisation_of_the_runtime_is_on() -> None:
    # Optimised, onnxruntime would remove the inner Casts, and the rounding with them.
    text = """g (float[1] x) => (float[1] y)
        { h = Cast<to=10>(x)  f = Cast<to=1>(h)  y = Identity(f) }"""
    assert run(model(text), {"x": f32([1 + 2**-20])})["y"][0] == 1.0


def test_a_path_and_bytes_are_models_too(tmp_path: Path) -> None:
    proto = model("g (float[2] x) => (float[2] y) { y = Neg(x) }")
    path = tmp_path / "m.onnx"
    onnx.save(proto, path)
    for source in (path, str(path), proto.SerializeToString(), proto):
        assert run(source, {"x": f32([1, 2])})["y"].tolist() == [-1, -2]


def test_a_proto_is_read_from_bytes_and_files(tmp_path: Path) -> None:
    proto, path = model("g (float[2] x) => (float[2] y) { y = Neg(x) }"), tmp_path / "model.onnx"
    onnx.save(proto, path)
    assert as_proto(proto) is proto
    assert as_proto(proto.SerializeToString()) == as_proto(path) == as_proto(str(path)) == proto
    with pytest.raises(ModelError, match="cannot read a model from the bytes: "):
        as_proto(b"no model")
    for wrong in (tmp_path / "none.onnx", tmp_path):
        with pytest.raises(ModelError, match=f"cannot read a model from {str(wrong)!r}: "):
            as_proto(wrong)


def test_external_data_is_found_from_the_path(tmp_path: Path) -> None:
    proto = model("g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }")
    path = tmp_path / "m.onnx"
    onnx.save(proto, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    assert run(path, {"x": f32([0, 0])})["y"].tolist() == [1, 2]


def test_load_failure_names_the_model_and_keeps_the_runtimes_words(tmp_path: Path) -> None:
    proto = model("broken (float[2] x) => (float[2] y, float[2] z) { y = Nope(x) z = Neg(x) }")
    with pytest.raises(RuntimeFailure, match=r"cannot load model 'broken' \(outputs y, z\).*Nope"):
        Session(proto)
    with pytest.raises(RuntimeFailure, match="a model of 7 bytes") as caught:
        Session(b"garbage")
    assert caught.value.__cause__ is not None
    with pytest.raises(RuntimeFailure, match=r"gone\.onnx"):
        Session(tmp_path / "gone.onnx")


def test_run_failure_names_the_operator_in_one_line() -> None:
    proto = model("g (float[N] x, int64[1] s) => (float[M] y) { y = Reshape(x, s) }")
    with pytest.raises(RuntimeFailure, match=r"while running model 'g'.*Reshape") as caught:
        run(proto, {"x": np.ones(6, np.float32), "s": i64([5])})
    assert caught.value.__cause__ is not None
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("feeds", [{}, {"x": f64([1])}, {"x": np.float32(1)}, {"z": f32([1])}])
def test_wrong_feeds_are_failures_on_both_runtimes(feeds: dict[str, Any]) -> None:
    proto = model("g (float[N] x) => (float[N] y) { y = Conv(x, x) }")
    for runner in (run, run_reference):
        with pytest.raises(RuntimeFailure):
            runner(proto, feeds)


def test_a_value_that_is_no_array_is_named() -> None:
    proto = model("g (float[N] x) => (float[N] y) { y = Neg(x) }")
    with pytest.raises(RuntimeFailure, match="input 'x' takes an array, not list"):
        run(proto, {"x": [1.0]})


def test_a_session_is_deterministic() -> None:
    session = Session(model("g (float[N, N] x) => (float[N, N] y) { y = MatMul(x, x) }"))
    x = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    assert session.run({"x": x})["y"].tobytes() == session.run({"x": x})["y"].tobytes()


def test_reference_results_have_the_same_form() -> None:
    text = """g (float[N] x) => (bfloat16[N] b, string[N] t, seq(float[N]) s, float m)
        { b = Cast<to=16>(x)  n = Cast<to=7>(x)  t = Cast<to=8>(n)  s = SequenceConstruct(x)
          m = ReduceSum<keepdims=0>(x) }"""
    feeds = {"x": f32([1, 2])}
    assert compare(run(model(text), feeds), run_reference(model(text), feeds)).ok


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int4", "uint4"])
def test_infinities_saturate_on_the_reference_too(dtype: str) -> None:
    zero = f"{dtype} zero = {{3}}"
    text = f"g (float[4] x) => ({dtype}[4] y) <float s = {{0.5}}, {zero}>"
    quantize = model(f"{text} {{ y = QuantizeLinear(x, s, zero) }}")
    feeds = {"x": np.array([np.inf, -np.inf, 6e4, -2], np.float32)}
    assert compare(run(quantize, feeds), run_reference(quantize, feeds)).ok


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize(
    ("start", "end", "step"),
    [(-9, -9, -2), (-9, -(2**62), -1), (-2, -9, -1), (0, 2, 1), (5, -9, -2)],
)
def test_a_slice_of_the_reference_starts_inside_the_data(
    size: int, start: int, end: int, step: int
) -> None:
    numbers = f"int64[1] s = {{{start}}}, int64[1] e = {{{end}}}, int64[1] t = {{{step}}}"
    text = f"g (float[{size}] x) => (float[k] y) <int64[1] a = {{0}}, {numbers}>"
    slices = model(f"{text} {{ y = Slice(x, s, e, a, t) }}")
    feeds = {"x": np.arange(size, dtype=np.float32)}
    assert compare(run(slices, feeds), run_reference(slices, feeds)).ok


def test_a_slice_of_the_reference_has_attributes_in_old_opsets() -> None:
    slices = model("g (float[4,3] x) => (float[a,b] y) { y = Slice<starts=[1], ends=[3]>(x) }")
    slices.opset_import[0].version = 9
    feeds = {"x": np.arange(12, dtype=np.float32).reshape(4, 3)}
    assert compare(run(slices, feeds), run_reference(slices, feeds)).ok


def test_reference_failures_are_runtime_failures() -> None:
    with pytest.raises(RuntimeFailure, match=r"onnx\.reference"):
        run_reference(model("g (float[N] x) => (float[N] y) { y = Nope(x) }"), {"x": np.ones(1)})
    bad = model("g (float[2] x, int64[1] s) => (float[M] y) { y = Reshape(x, s) }")
    with pytest.raises(RuntimeFailure, match="failed while running model 'g'") as caught:
        run_reference(bad, {"x": np.ones(2, np.float32), "s": i64([3])})
    assert caught.value.__cause__ is not None


def test_importing_the_package_loads_no_runtime() -> None:
    code = (
        "import sys, tiered.runtime, tiered.support.numerics\n"
        "heavy = {'numpy', 'onnx', 'onnxruntime'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "import tiered.runtime.compare.outputs, tiered.runtime.session\n"
        "import tiered.runtime.inputs.make\n"
        "heavy = {'onnx', 'onnxruntime'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])


def test_a_product_is_the_same_whether_its_factor_is_constant_or_computed() -> None:
    weight = np.sin(np.arange(64 * 64, dtype=np.float32)).reshape(64, 64)
    computed = model("g (float[1,64] x) => (float[1,64] y) { t = Transpose(w) y = MatMul(x, t) }")
    constant = model("g (float[1,64] x) => (float[1,64] y) { y = MatMul(x, w) }")
    computed.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    constant.graph.initializer.append(onnx.numpy_helper.from_array(weight.T.copy(), "w"))
    feeds = {"x": np.cos(np.arange(64, dtype=np.float32)).reshape(1, 64)}
    first, second = (Session(each).run(feeds)["y"] for each in (computed, constant))
    np.testing.assert_array_equal(first, second)


def test_the_reference_gathers_from_more_than_64_elements() -> None:
    text = "g (float[2,200] x, int64[2,3] i) => (float[2,3] y) { y = GatherElements<axis=1>(x, i) }"
    x = np.arange(400, dtype=np.float32).reshape(2, 200)
    feeds = {"x": x, "i": np.array([[0, -1, 150], [199, 7, -200]])}
    assert compare(run(model(text), feeds), run_reference(model(text), feeds)).ok
    fewer = text.replace("[2,3] ", "[1,3] ").replace("axis=1", "axis=-1")
    feeds["i"] = feeds["i"][:1]
    assert compare(run(model(fewer), feeds), run_reference(model(fewer), feeds)).ok


@pytest.mark.parametrize(
    ("text", "name", "size"),
    [
        ("(float[3,2] x, int64[2,2] i) => (float[2,2] y) { y = GatherElements(x, i) }", "i", 2),
        (
            "(float[2,3] x, int64[2,2] i) => (float[2,2] y) { y = GatherElements<axis=-1>(x, i) }",
            "i", 2,
        ),
        (
            """(float[3,2] x) => (float[a,b] y) <int64[2] s = {-1,-1}, int64[2] e = {-9,-9},
            int64[2] t = {-2,-1}> { y = Slice(x, s, e, , t) }""",
            "", 0,
        ),
        (
            """(float[3,2] x) => (float[a,b] y) <int64[2] s = {-9,0}, int64[2] e = {9,2},
            int64[2] t = {1,1}> { y = Slice(x, s, e, , t) }""",
            "", 0,
        ),
        ("(float[1,1,4] x) => (float[1,1,3] y) { y = MaxPool<kernel_shape=[2]>(x) }", "nan", 0),
        ("(float[1,1,4] x) => (float[1,1,3] y) { y = MaxPool<kernel_shape=[2]>(x) }", "", 0),
        (
            """(float[4] x) => (float8e4m3fn[4] y) <float s = {0.5}, float8e4m3fn z = {0}> {
            y = QuantizeLinear(x, s, z) }""",
            "", 0,
        ),
    ],
)  # fmt: skip
def test_operators_of_the_reference_follow_the_standard(text: str, name: str, size: int) -> None:
    proto = model(f"g {text}")
    shape = [dim.dim_value for dim in proto.graph.input[0].type.tensor_type.shape.dim]
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    feeds: dict[str, Any] = {"x": x}
    if name == "nan":
        x.reshape(-1)[1] = np.nan
    elif name:
        feeds[name] = np.array([[1, 0], [1, 1]])
    found = run_reference(proto, feeds)
    if name == "nan":
        np.testing.assert_array_equal(found["y"].reshape(-1), [np.nan, np.nan, 3])
    else:
        assert compare(run(proto, feeds), found).ok


def test_some_outputs_are_run_in_the_order_that_is_asked_for() -> None:
    two = Session(model("g (float[1] x) => (float[1] y, float[1] z) { y = Neg(x)  z = Abs(x) }"))
    feeds = {"x": f32([-2])}
    assert list(two.run(feeds, ["z", "y"])) == ["z", "y"]
    assert two.run(feeds, []) == {}
    with pytest.raises(RuntimeFailure, match="it has no output 'q'"):
        two.run(feeds, ["y", "q"])


@pytest.mark.parametrize(
    ("count", "shown"), [(0, "none"), (1, "y0"), (3, "y0, y1, y2"), (4, "y0, y1, y2, ...")]
)
def test_a_model_has_its_first_outputs_in_messages(count: int, shown: str) -> None:
    proto = onnx.ModelProto()
    proto.graph.name = "g"
    proto.graph.output.extend(onnx.ValueInfoProto(name=f"y{at}") for at in range(count))
    assert label_of(proto) == f"model 'g' (outputs {shown})"


@pytest.mark.parametrize("runtime", [Session, Reference])
def test_a_label_stands_for_the_model_in_messages(runtime: Any, tmp_path: Path) -> None:
    text = "g (float[1] x) => (float[1] y) { y = Neg(x) }"
    with pytest.raises(RuntimeFailure, match=r"my model"):
        runtime(model(text.replace("Neg", "Nope")), label="my model")
    onnx.save(model(text), tmp_path / "model.onnx")
    assert runtime(tmp_path / "model.onnx").run({"x": f32([1])})["y"].tolist() == [-1]


def test_results_of_the_reference_are_in_the_form_of_a_session() -> None:
    for value, expected in (
        (None, None), ({1: 2.0}, {1: 2.0}), ([1.5, None], [np.float64(1.5), None]),
    ):  # fmt: skip
        assert _plain(value) == expected
    words = _plain(np.array(["a", "bc"]))
    assert (words.dtype, words.tolist()) == (np.dtype(object), ["a", "bc"])
    assert _plain(np.float32(2)).shape == ()


def test_floats_of_four_bits_are_packed_by_their_codes() -> None:
    raw = DataType(TensorProto.FLOAT4E2M1)
    array = np.array([0.5, -6, 1, 0, 3], raw.numpy)
    packed = _pack(array, raw)
    assert packed == bytes([0x1 | 0xF << 4, 0x2, 0x5])
    back = _unpack(packed, (5,), raw)
    assert back.dtype == array.dtype
    assert back.tolist() == array.tolist()


def test_words_of_an_error_are_one_line_of_a_length() -> None:
    assert _words(ValueError("a\n  b\tc")) == "a b c"
    assert _words(ValueError()) == "ValueError"
    longest = "x" * _LONGEST_WORDS
    assert _words(ValueError(longest)) == longest
    assert _words(ValueError(f"{longest}y")) == f"{longest} ..."
