"""Types of operators that onnx does not infer: onnxruntime's own, and those of ai.onnx.ml."""

import pytest

from tests.small import named, parsed
from tiered.graph import DataType
from tiered.graph.shape_inference.symbolic_dims import is_invented

FLOAT, HALF, BYTE, INT = (int(DataType[name]) for name in ("FLOAT", "FLOAT16", "UINT8", "INT32"))


def types(inputs: str, call: str, outputs: str = "y") -> list[object]:
    """Return the dtype and the shape of each output of a call; None where nothing is known."""
    names = outputs.split(", ")
    model = parsed(
        f"({inputs}) => (float[?] kept) {{ {outputs} = com.microsoft.{call}  kept = Abs(x) }}"
    )
    values = [named(model, name) for name in names]
    return [None if each.dtype is None else (int(each.dtype), known(each.shape)) for each in values]


def known(shape: tuple[int | str | None, ...] | None) -> tuple[int | str | None, ...] | None:
    """Return a shape without the names that inference invents."""
    return None if shape is None else tuple(None if is_invented(dim) else dim for dim in shape)


@pytest.mark.parametrize(
    ("inputs", "call", "expected"),
    [
        ("float16[N,4] x, float16[4] b", "BiasGelu(x, b)", (HALF, ("N", 4))),
        ("float[N,4] x", "QuickGelu(x)", (FLOAT, ("N", 4))),
        ("float[N,4] x, float s, int8 z", "QuantizeLinear(x, s, z)", (3, ("N", 4))),
        ("float[N,4] x, float s", "QuantizeLinear(x, s)", (BYTE, ("N", 4))),
        ("uint8[N,4] x, float16 s", "DequantizeLinear(x, s)", (HALF, ("N", 4))),
        (
            "float[1,2,8,8] x, float[3,2,3,3] w",
            'FusedConv<activation = "Relu", strides = [2,2]>(x, w)',
            (FLOAT, (1, 3, 3, 3)),
        ),
        (
            "float[4,2] x, float[4,3] w",
            'FusedGemm<activation = "Relu", transA = 1>(x, w)',
            (FLOAT, (2, 3)),
        ),
        ("float[N,2,3] x, float[N,3,4] w", "FusedMatMul(x, w)", (FLOAT, ("N", 2, 4))),
        ("float[N,3,2] x, float[4,3] w", "FusedMatMul<transA = 1, transB = 1>(x, w)",
         (FLOAT, ("N", 2, 4))),
        ("float[2,N,3] x, float[N,3,4] w", "FusedMatMul<transBatchA = 1>(x, w)",
         (FLOAT, ("N", 2, 4))),
        ("float[2,3] x, float[N,3,4] w", "FusedMatMul(x, w)", (FLOAT, ("N", 2, 4))),
        ("float[M,2,3] x, float[N,3,4] w", "FusedMatMul(x, w)", (FLOAT, (None, 2, 4))),
        ("uint8[N,1] x, float s, uint8 z, uint8[3] w",
         "QLinearAdd(x, s, z, w, s, z, s, z)", (BYTE, ("N", 3))),
        ("uint8[N,1] x, bool[3] c, float s, uint8 z, uint8[1] w",
         "QLinearWhere(c, x, s, z, w, s, z, s, z)", (BYTE, ("N", 3))),
        ("uint8[N,4,5,6] x, float s, uint8 z",
         "QLinearGlobalAveragePool<channels_last = 0>(x, s, z, s, z)", (BYTE, ("N", 4, 1, 1))),
        ("uint8[N,4,5,6] x, float s, uint8 z",
         "QLinearGlobalAveragePool<channels_last = 1>(x, s, z, s, z)", None),
        ("uint8[N,4,6] x, float s, uint8 z",
         "QLinearAveragePool<kernel_shape = [2], strides = [2]>(x, s, z, s, z)",
         (BYTE, ("N", 4, 3))),
        ("uint8[N,4,6] x, float s, uint8 z",
         "QLinearAveragePool<kernel_shape = [2], ceil_mode = 1>(x, s, z, s, z)",
         (BYTE, ("N", 4, None))),
        ("uint8[2,3] x, float s, int8 z, uint8[4,3] w",
         "QLinearConcat<axis = 0>(s, z, x, s, z, w, s, z)", (3, (6, 3))),
        ("uint8[2,3] x, float s, uint8 z, uint8[3,4] w",
         "QGemm(x, s, z, w, s, z, , s, z)", (BYTE, (2, 4))),
        ("uint8[2,3] x, float s, uint8 z, uint8[3,4] w", "QGemm(x, s, z, w, s, z)",
         (FLOAT, (2, 4))),
        ("float[N,S,8] x, float[N,T,8] k, float[N,T,12] v",
         "MultiHeadAttention<num_heads = 4>(x, k, v)", (FLOAT, ("N", "S", 12))),
        ("float[N,S,8] x, float[N,4,T,2] k, float[N,4,T,3] v",
         "MultiHeadAttention<num_heads = 4>(x, k, v)", (FLOAT, ("N", "S", 12))),
        ("float[N,S,4,3,2] x", "MultiHeadAttention<num_heads = 4>(x, x, x)", None),
        ("float[N,4] x, uint8[6,1,2] w, float[6] s",
         "MatMulNBits<K = 4, N = 6, bits = 4, block_size = 16>(x, w, s)", (FLOAT, ("N", 6))),
        ("float[N,4] x, uint8[4,6] w, float s", "DynamicQuantizeMatMul(x, w, s)",
         (FLOAT, ("N", 6))),
        ("int64[N,4] x", "MurmurHash3(x)", (int(DataType.UINT32), ("N", 4))),
        ("int64[N,4] x", "MurmurHash3<positive = 0>(x)", (INT, ("N", 4))),
        ("string[N] x", 'Tokenizer<mark = 0, mincharnum = 1, pad_value = "">(x)',
         (int(DataType.STRING), ("N", None))),
        ("int16[2,3] x, int16[3,4] w", "MatMulInteger16(x, w)", (INT, None)),
        ("uint8[2,3] x, float s, uint8 z, int8[1,1,1] w",
         "QLinearConv(x, s, z, w, s, z, s, z)", (BYTE, None)),
    ],
)  # fmt: skip
def test_the_type_of_the_first_output(inputs: str, call: str, expected: object) -> None:
    assert types(inputs, call) == [expected]


def test_a_layer_of_a_sum_returns_the_sum_as_its_fourth_output() -> None:
    found = types(
        "float[N,3,4] x, float[N,3,4] s, float[4] g",
        "SkipLayerNormalization(x, s, g)",
        "y, a, b, z",
    )
    assert found == [(FLOAT, ("N", 3, 4)), None, None, (FLOAT, ("N", 3, 4))]


def test_an_embedding_has_a_vector_for_each_id() -> None:
    found = types(
        "int32[N,5] i, float[9,4] x, float[7,4] p, float[4] g",
        "EmbedLayerNormalization(i, i, x, p, x, g, g)",
        "y, m, s",
    )
    assert found == [(FLOAT, ("N", 5, 4)), (INT, ("N",)), (FLOAT, ("N", 5, 4))]


def test_caches_grow_along_their_third_axis() -> None:
    found = types(
        "float[N,S,8] x, float16[N,2,P,4] p, int32[N] a, int32 b",
        "GroupQueryAttention<num_heads = 2, kv_num_heads = 2>(x, x, x, p, p, a, b)",
        "y, k, v",
    )
    cache = (HALF, ("N", 2, None, 4))
    assert found == [(FLOAT, ("N", "S", 8)), cache, cache]


@pytest.mark.parametrize(
    ("attributes", "weight", "width"),
    [
        ("num_heads = 2", "float[8,24] w", 8),
        ("num_heads = 2, qkv_hidden_sizes = [4,4,6]", "float[8,14] w", 6),
        ("num_heads = 2", "float[8,M] w", None),
    ],
)
def test_packed_heads_have_a_third_of_the_columns_or_their_own_size(
    attributes: str, weight: str, width: int | None
) -> None:
    inputs = f"float[N,S,8] x, {weight}, float[24] b, float[2,N,2,P,4] p"
    past = (FLOAT, (2, "N", 2, None, 4))
    found = types(inputs, f"Attention<{attributes}>(x, w, b, , p)", "y, z")
    assert found == [(FLOAT, ("N", "S", width)), past]
    assert types(inputs, f"Attention<{attributes}>(x, w, b)") == found[:1]


@pytest.mark.parametrize(
    ("labels", "dtype"),
    [('classlabels_strings = ["a", "b"]', DataType.STRING), ("classlabels_ints = [0,1]",
                                                             DataType.INT64)],
)  # fmt: skip
def test_labels_have_the_dtype_of_their_list(labels: str, dtype: DataType) -> None:
    model = parsed(
        f"""<ir_version: 10, opset_import: ["" : 21, "ai.onnx.ml" : 3]> g (float[N,2] x) =>
        (float[?] kept) {{ y, z = ai.onnx.ml.LinearClassifier
        <coefficients = [1.0,2.0], intercepts = [0.5], {labels}>(x)  kept = Abs(x) }}"""
    )
    assert (named(model, "y").dtype, named(model, "z").dtype) == (dtype, DataType.FLOAT)


NOT_KNOWN = {
    # u has no type, h no rank, and an operand between two commas is absent.
    "Gelu(u)": None,
    "QuantizeLinear(u, s, z)": (BYTE, None),
    "QuantizeLinear(x, s, u)": None,
    "QuantizeLinear(, s, z)": None,
    "DequantizeLinear(x, u)": None,
    "FusedMatMul(u, x)": None,
    "FusedMatMul(h, x)": None,
    "FusedMatMul(s, x)": None,
    "FusedMatMul(x, )": None,
    "QLinearAdd(u, s, z, x, s, z, s, z)": None,
    "QLinearAdd(x, s, z, u, s, z, s, z)": (FLOAT, None),
    "QLinearAdd(x, s, z, , s, z, s, z)": None,
    "QLinearGlobalAveragePool<channels_last = 0>(h, s, z, s, z)": None,
    "QLinearGlobalAveragePool<channels_last = 0>(u, s, z, s, z)": None,
    "QLinearAveragePool<kernel_shape = [2], ceil_mode = 1>(h, s, z, s, z)": (FLOAT, None),
    "QLinearAveragePool<kernel_shape = [2], ceil_mode = 1>(u, s, z, s, z)": None,
    "QLinearAveragePool<kernel_shape = [2], channels_last = 1>(x, s, z, s, z)": None,
    "QLinearAveragePool<kernel_shape = [2]>(x, s, z, s, z)": None,
    "QLinearConcat<axis = 0>(s, u, x, s, z)": None,
    "QLinearConcat<axis = 9>(s, z, x, s, z)": None,
    "QGemm(x, s, z, u, s, z)": None,
    "QGemm(x, s, z, x, s, z, , s, u)": None,
    "MultiHeadAttention<num_heads = 4>(x, x, x)": None,
    "MultiHeadAttention<num_heads = 4>(c, c, u)": None,
    "MultiHeadAttention<num_heads = 4>(c, c, x)": None,
    "MultiHeadAttention<num_heads = 4>(c, c, wide)": (FLOAT, (2, 3, None)),
    "EmbedLayerNormalization(h, h, x, x, x, s, s)": None,
    "EmbedLayerNormalization(x, x, u, x, x, s, s)": None,
    "GroupQueryAttention<num_heads = 2, kv_num_heads = 2>(x, x, x, x, x)": None,
    "GroupQueryAttention<num_heads = 2, kv_num_heads = 2>(x, x, x)": None,
    "Attention<num_heads = 2>(x, x)": None,
    "Attention<num_heads = 2>(c, )": None,
    "Attention<num_heads = 2>(c, x, , , h)": (FLOAT, (2, 3, 1)),
    "Attention<num_heads = 2>(c, x, , , c)": (FLOAT, (2, 3, 1)),
    "MatMulNBits<K = 4, N = 6, bits = 4, block_size = 16>(h, x, x)": None,
    "MatMulNBits<K = 4, N = 6, bits = 4, block_size = 16>(s, x, x)": None,
    "MurmurHash3(h)": (int(DataType.UINT32), None),
    "Tokenizer(h)": (int(DataType.STRING), None),
    "CDist(u)": None,
    "FusedConv(x, )": None,
}


def test_what_is_not_known_of_an_operand_is_not_known_of_the_result() -> None:
    for call, expected in NOT_KNOWN.items():
        model = parsed(
            """<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1, "vendor" : 1]> g
            (float[2,3] x, float[2,3,4] c, float[2,4,3,N] wide, float s, uint8 z, int64[R] t)
            => (float[?] kept) { u = vendor.F(x) h = Reshape(x, t)"""
            f" y = com.microsoft.{call} kept = Abs(x) }}"
        )
        y = named(model, "y")
        assert (y.dtype and (int(y.dtype), known(y.shape))) == expected, call


DTYPES = {
    "CDist": ["float"],
    "CropAndResize": ["float"],
    "GridSample": ["float"],
    "NhwcMaxPool": ["float"],
    "Pad": ["float"],
    "DecoderMaskedMultiHeadAttention": ["float"] * 3,
    "DynamicQuantizeLSTM": ["float"] * 3,
    "DynamicTimeWarping": ["int32"],
    "GatherBlockQuantized": ["double"],
    "NGramRepeatBlock": ["float16"],
    "QAttention": ["int8"] * 2,
    "QEmbedLayerNormalization": ["bool", "int32"],
    "QLinearConv": ["uint16"],
    "Unique": ["float", "int64", "int64"],
    "WordConvEmbedding": ["float16"],
}


def test_dtypes_of_operators_whose_shapes_are_not_inferred() -> None:
    calls = [
        f"{', '.join(f'{op}_{at}' for at in range(len(dtypes)))} = com.microsoft.{op}"
        "(i0, i1, i2, i3, i4, i5, i6, i7, i8)"
        for op, dtypes in DTYPES.items()
    ]
    model = parsed(
        "(float i0, float16 i1, double i2, int8 i3, uint8 i4, int16 i5, int32 i6, uint16 i7,"
        f" bool i8) => (float kept) {{ {' '.join(calls)} kept = Abs(i0) }}"
    )
    for op, dtypes in DTYPES.items():
        found = [str(named(model, f"{op}_{at}").type) for at in range(len(dtypes))]
        assert found == dtypes, op
