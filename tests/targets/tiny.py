"""A tiny model of each operator that `onnxruntime_cpu` lists, its dtypes left open.

    "T[2,3], int64[1]={0} | keepdims=0 -> 2"

are two inputs, the second of them a constant, an attribute and two outputs. What stands before the
brackets is a type parameter of the operator or a dtype; an empty place is an absent input.
"""

import re

from tiered.graph.core.dtypes import DataType

SAME = "T[2,3]"

FAMILIES = {
    SAME: """
        Abs Acos Acosh Asin Asinh Atan Atanh Ceil Cos Cosh Elu Erf Exp Flatten Floor Gelu
        HardSigmoid Hardmax Log LogSoftmax LpNormalization Neg NonZero Reciprocal Relu Round Selu
        Shape Shrink Sigmoid Sign Sin Sinh Size Softmax Softplus Softsign Sqrt Squeeze Tan Tanh
        ThresholdedRelu Transpose BitwiseNot Celu HardSwish Mish Not MeanVarianceNormalization
        com.microsoft::Gelu com.microsoft::QuickGelu com.microsoft::FastGelu ai.onnx.ml::Normalizer
        com.microsoft::ScaledSiLU""",
    "T[2,3], T[2,3]": """
        Add Sub Mul Div Max Min Mean Sum Less LessOrEqual Greater GreaterOrEqual And Or Xor
        BitwiseAnd BitwiseOr BitwiseXor Equal StringConcat""",
    "T[2,3], int64[1]={1}": """
        ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd
        ReduceSum ReduceSumSquare Unsqueeze""",
    "T[2,3] | axis=0": "ArgMax ArgMin",
    "T[1,2,4,4]": "GlobalAveragePool GlobalMaxPool GlobalLpPool",
    "T[1,2,4,4] | kernel_shape=[2,2]": "AveragePool MaxPool LpPool",
}

ALONE = {
    "AffineGrid": "T1[1,2,3], T2[4]={1,1,2,2}",
    "Attention": "T1[1,2,3,4], T1[1,2,3,4], T2[1,2,3,4]",
    "BatchNormalization": "T[1,2,3], T1[2], T1[2], T2[2], T2[2]",
    "CastLike": "T1[2], T2[2]",
    "BitCast": "T1[2] | to={T1}",
    "BitShift": 'T[2], T[2] | direction="LEFT"',
    "BlackmanWindow": "T1[]={4}",
    "HammingWindow": "T1[]={4}",
    "HannWindow": "T1[]={4}",
    "Cast": "T1[2] | to={T2}",
    "Clip": "T[2,3], T[]={0}, T[]={1}",
    "Col2Im": "T[1,4,4], int64[2]={3,3}, int64[2]={2,2}",
    "Compress": "T[2,3], T1[2]={1,0} | axis=0",
    "Concat": "T[2], T[2] | axis=0",
    "ConstantOfShape": "T1[1]={2}",
    "Conv": "T[1,2,4,4], T[3,2,2,2]",
    "ConvInteger": "T1[1,2,4,4], T2[3,2,2,2]",
    "ConvTranspose": "T[1,2,4,4], T[2,3,2,2]",
    "CumProd": "T[2,3], T2[]={1}",
    "CumSum": "T[2,3], T2[]={1}",
    "DFT": "T1[1,4,1], , int64[]={1}",
    "DeformConv": "T[1,1,3,3], T[1,1,2,2], T[1,8,2,2] | kernel_shape=[2,2]",
    "DepthToSpace": "T[1,4,2,2] | blocksize=2",
    "DequantizeLinear": "T1[2], T2[] | output_dtype={T3}",
    "Det": "T[3,3]",
    "Dropout": "T[2,3]",
    "DynamicQuantizeLinear": "T1[2] -> 3",
    "Einsum": 'T[2,3], T[3,2] | equation="ij,jk->ik"',
    "Expand": "T[1,3], int64[2]={2,3}",
    "EyeLike": "T1[3,3] | dtype={T2}",
    "GRU": "T[2,1,3], T[1,12,3], T[1,12,4] | hidden_size=4 -> 2",
    "LSTM": "T[2,1,3], T[1,16,3], T[1,16,4] | hidden_size=4 -> 3",
    "RNN": "T[2,1,3], T[1,4,3], T[1,4,4] | hidden_size=4 -> 2",
    "Gather": "T[3,2], Tind[2]={0,1}",
    "GatherElements": "T[3,2], Tind[1,2]={0,1}",
    "GatherND": "T[3,2], int64[1,1]={1}",
    "GroupNormalization": "T[1,2,3], T[2], T[2] | num_groups=2",
    "Gemm": "T[2,3], T[3,2], T[2]",
    "GridSample": "T1[1,1,3,3], T2[1,2,2,2]",
    "Identity": "V[2]",
    "InstanceNormalization": "T[1,2,3], T[2], T[2]",
    "IsInf": "T1[2]",
    "IsNaN": "T1[2]",
    "LRN": "T[1,2,3,3] | size=1",
    "LayerNormalization": "T[2,3], T[3], T[3]",
    "LeakyRelu": "T[2]",
    "MatMul": "T[2,3], T[3,2]",
    "MatMulInteger": "T1[2,3], T2[3,2]",
    "MaxRoiPool": "T[1,1,4,4], T[1,5]={0,0,0,2,2} | pooled_shape=[2,2]",
    "MaxUnpool": "T1[1,1,2,2], T2[1,1,2,2]={0,2,8,10} | kernel_shape=[2,2], strides=[2,2]",
    "MelWeightMatrix": "T1[]={4}, T1[]={8}, T1[]={8000}, T2[]={0}, T2[]={4000}",
    "Mod": "T[2]={4,5}, T[2]={3,3} | fmod=1",
    "Multinomial": "T1[1,3] | sample_size=2",
    "NonMaxSuppression": "float[1,2,4], float[1,1,2]",
    "OneHot": "T1[2]={0,1}, T2[]={3}, T3[2]",
    "PRelu": "T[2,3], T[3]",
    "Pad": "T[2,3], int64[4]={1,0,0,1}",
    "Pow": "T[2]={1,2}, T1[2]={1,2}",
    "QLinearConv": (
        "T1[1,1,3,3], float[]={1}, T1[]={0}, T2[1,1,2,2], float[]={1}, T2[]={0}, "
        "float[]={1}, T3[]={0}"
    ),
    "QLinearMatMul": (
        "T1[2,3], TS[]={1}, T1[]={0}, T2[3,2], TS[]={1}, T2[]={0}, TS[]={1}, T3[]={0}"
    ),
    "QuantizeLinear": "T1[2], T2[]={1}, T3[]",
    "RMSNormalization": "T[2,3], V[3]",
    "RandomNormal": "| shape=[2], dtype={T}",
    "RandomNormalLike": "T1[2] | dtype={T2}",
    "RandomUniform": "| shape=[2], dtype={T}",
    "RandomUniformLike": "T1[2] | dtype={T2}",
    "Range": "T[]={0}, T[]={4}, T[]={2}",
    "RegexFullMatch": 'string[2] | pattern="a+"',
    "Reshape": "T[2,3], int64[2]={3,2}",
    "Resize": "T1[1,1,2,2], , float[4]={1,1,2,2}",
    "ReverseSequence": "T[2,2], int64[2]={1,2} | time_axis=0, batch_axis=1",
    "RoiAlign": "T1[1,1,4,4], T1[1,4]={0,0,2,2}, T2[1]={0}",
    "RotaryEmbedding": "T[1,2,3,4], T[5,2], T[5,2], M[1,3]={0,1,2}",
    "STFT": "T1[1,8,1], T2[]={2}, T1[4]",
    "Scatter": "T[3], Tind[1]={1}, T[1] @9",
    "ScatterElements": "T[3], Tind[1]={1}, T[1]",
    "ScatterND": "T[3], int64[1,1]={1}, T[1]",
    "Slice": "T[4], Tind[1]={0}, Tind[1]={2}",
    "SpaceToDepth": "T[1,1,2,2] | blocksize=2",
    "Split": "T[4] | num_outputs=2 -> 2",
    "StringNormalizer": 'string[2] | case_change_action="LOWER", locale="C"',
    "StringSplit": 'string[2] | delimiter=" " -> 2',
    "TensorScatter": "T[1,1,4,2], T[1,1,1,2], int64[1]={1}",
    "TfIdfVectorizer": (
        'int64[4]={1,1,2,2} | mode="TF", min_gram_length=1, max_gram_length=1, max_skip_count=0, '
        "ngram_counts=[0], ngram_indexes=[0,1], pool_int64s=[1,2]"
    ),
    "Tile": "T[2], int64[1]={2}",
    "TopK": "T[4], int64[1]={2} -> 2",
    "Trilu": "T[3,3]",
    "Unique": "T[4]",
    "Upsample": "T[1,1,2,2], float[4]={1,1,2,2} @9",
    "Where": "bool[2]={1,0}, T[2], T[2]",
    "ai.onnx.ml::ArrayFeatureExtractor": "T[2,3], int64[1]={1}",
    "ai.onnx.ml::Binarizer": "T[2]",
    "ai.onnx.ml::Scaler": "T[1,2] | offset=[0.0,0.0], scale=[1.0,1.0]",
    "ai.onnx.ml::LinearRegressor": "T[1,2] | coefficients=[1.0,2.0], intercepts=[0.0]",
    "ai.onnx.ml::CategoryMapper": 'T1[2] | cats_int64s=[1,2], cats_strings=["a","b"]',
    "ai.onnx.ml::FeatureVectorizer": "T1[1,2], T1[1,3] | inputdimensions=[2,3]",
    "ai.onnx.ml::LinearClassifier": (
        "T1[1,2] | coefficients=[1.0,2.0,3.0,4.0], intercepts=[0.0,0.0], "
        "classlabels_ints=[0,1] -> 2"
    ),
    "ai.onnx.ml::OneHotEncoder": "T[2] | cats_int64s=[1,2]",
    "ai.onnx.ml::SVMClassifier": (
        'T1[1,2] | kernel_type="LINEAR", coefficients=[1.0,2.0,3.0,4.0], rho=[0.0], '
        "kernel_params=[1.0,0.0,0.0], classlabels_ints=[0,1] -> 2"
    ),
    "ai.onnx.ml::SVMRegressor": (
        'T[1,2] | kernel_type="LINEAR", coefficients=[1.0,2.0], rho=[0.0], '
        "kernel_params=[1.0,0.0,0.0]"
    ),
    "ai.onnx.ml::TreeEnsembleClassifier": (
        "T1[1,2] | nodes_treeids=[0], nodes_nodeids=[0], nodes_featureids=[0], "
        'nodes_values=[0.0], nodes_modes=["LEAF"], nodes_truenodeids=[0], '
        "nodes_falsenodeids=[0], class_treeids=[0], class_nodeids=[0], class_ids=[0], "
        "class_weights=[1.0], classlabels_int64s=[0,1] -> 2"
    ),
    "ai.onnx.ml::TreeEnsembleRegressor": (
        "T[1,2] | nodes_treeids=[0], nodes_nodeids=[0], nodes_featureids=[0], "
        'nodes_values=[0.0], nodes_modes=["LEAF"], nodes_truenodeids=[0], '
        "nodes_falsenodeids=[0], target_treeids=[0], target_nodeids=[0], target_ids=[0], "
        "target_weights=[1.0], n_targets=1"
    ),
    "ai.onnx.ml::ZipMap": "float[1,2] | classlabels_int64s=[0,1]",
    "com.microsoft::Attention": "T[1,2,8], T[8,24], T[24] | num_heads=2",
    "com.microsoft::BiasGelu": "T[2,3], T[3]",
    "com.microsoft::DynamicQuantizeMatMul": "T1[2,3], T2[3,2], T1[]",
    "com.microsoft::EmbedLayerNormalization": (
        "int32[1,2]={0,1}, int32[1,2]={0,1}, T[4,8], T[4,8], T[2,8], T[8], T[8] -> 2"
    ),
    "com.microsoft::FusedConv": 'T[1,2,4,4], T[3,2,2,2], T[3] | activation="Relu"',
    "com.microsoft::FusedGemm": 'T[2,3], T[3,2], T[2] | activation="Relu"',
    "com.microsoft::FusedMatMul": "T[2,3], T[2,3] | transB=1, alpha=0.5",
    "com.microsoft::GroupQueryAttention": (
        "T[1,1,16], T[1,1,8], T[1,1,8], , , M[1]={0}, M[]={1} | num_heads=2, kv_num_heads=1 -> 3"
    ),
    "com.microsoft::Inverse": "T[2,2]={1,0,0,1}",
    "com.microsoft::MatMulIntegerToFloat": "T1[2,3], T2[3,2], T3[]={1}, T3[]={1}",
    "com.microsoft::MatMulNBits": "T1[1,16], T2[2,1,8], T1[2] | K=16, N=2, bits=4, block_size=16",
    "com.microsoft::MultiHeadAttention": "T[1,2,8], T[1,2,8], T[1,2,8] | num_heads=2",
    "com.microsoft::NhwcMaxPool": "T[1,4,4,2] | kernel_shape=[2,2]",
    "com.microsoft::QGemm": (
        "TA[2,3], T[]={1}, TA[]={0}, TB[3,2], T[]={1}, TB[]={0}, , T[]={1}, TYZ[]={0}"
    ),
    "com.microsoft::QLinearAdd": (
        "T[2], float[]={1}, T[]={0}, T[2], float[]={1}, T[]={0}, float[]={1}, T[]={0}"
    ),
    "com.microsoft::QLinearConv": (
        "T1[1,2,2,3], float[]={1}, T1[]={0}, T2[4,3,1,1], float[]={1}, T2[]={0}, float[]={1}, "
        "T3[]={0} | channels_last=1"
    ),
    "com.microsoft::QLinearMul": (
        "T[2], float[]={1}, T[]={0}, T[2], float[]={1}, T[]={0}, float[]={1}, T[]={0}"
    ),
    "com.microsoft::QLinearAveragePool": (
        "uint8[1,1,4,4], float[]={1}, uint8[]={0}, float[]={1}, uint8[]={0} | kernel_shape=[2,2]"
    ),
    "com.microsoft::QLinearConcat": (
        "float[]={1}, uint8[]={0}, uint8[2], float[]={1}, uint8[]={0} | axis=0"
    ),
    "com.microsoft::QLinearGlobalAveragePool": (
        "uint8[1,1,4,4], float[]={1}, uint8[]={0}, float[]={1}, uint8[]={0}"
    ),
    "com.microsoft::QLinearLeakyRelu": "T[2], float[]={1}, T[]={0}, float[]={1}, T[]={0}",
    "com.microsoft::QLinearSigmoid": "T[2], float[]={1}, T[]={0}, float[]={1}, T[]={0}",
    "com.microsoft::QLinearSoftmax": (
        "T[2,3], float[]={1}, T[]={0}, float[]={0.01}, T[]={0} | opset=13, axis=1"
    ),
    "com.microsoft::QLinearWhere": (
        "bool[2]={1,0}, T[2], float[]={1}, T[]={0}, T[2], float[]={1}, T[]={0}, "
        "float[]={1}, T[]={0}"
    ),
    "com.microsoft::QuantizeLinear": "T1[2], T1[]={1}, T2[]={0}",
    "com.microsoft::DequantizeLinear": "T1[2], T2[]={1}, T1[]={0}",
    "com.microsoft::RotaryEmbedding": "T[1,2,3,4], M[1,3]={0,1,2}, T[5,2], T[5,2]",
    "com.microsoft::SkipLayerNormalization": "T[1,2,4], T[1,2,4], T[4], T[4]",
    "com.microsoft::SkipSimplifiedLayerNormalization": "T[1,2,4], T[1,2,4], T[4]",
    "com.microsoft::TransposeMatMul": "T[2,3], T[2,3] | transB=1",
    "com.microsoft::Trilu": "T[3,3]",
    "com.microsoft::DynamicQuantizeLSTM": (
        "T[2,1,3], T2[1,3,16], T2[1,4,16], , , , , , T[1]={0.1}, T2[1]={0}, T[1]={0.1}, "
        "T2[1]={0} | hidden_size=4 -> 3"
    ),
    "com.microsoft::Tokenizer": 'T[2] | mark=0, pad_value="#", mincharnum=1, tokenexp="[a-z]+"',
    "com.microsoft::CDist": 'T[2,3], T[4,3] | metric="euclidean"',
    "com.microsoft::ConvTransposeWithDynamicPads": "T[1,2,4,4], T[2,3,2,2], int64[4]={0,0,0,0}",
    "com.microsoft::CropAndResize": "T1[1,1,4,4], T1[1,4]={0,0,1,1}, T2[1]={0}, T2[2]={2,2}",
    "com.microsoft::ExpandDims": "T[2], int32[]={0}",
    "com.microsoft::GatherND": "T[3,2], Tind[1,1]={1}",
    "com.microsoft::GridSample": "T1[1,1,3,3], T1[1,2,2,2]",
    "com.microsoft::MatMulInteger16": "T1[2,3], T2[3,2]",
    "com.microsoft::MaxpoolWithMask": "T[1,1,4,4], int32[1,1,4,4] | kernel_shape=[2,2]",
    "com.microsoft::MurmurHash3": "T1[2]",
    "com.microsoft::NGramRepeatBlock": "int64[1,3]={1,2,1}, T[1,4] | ngram_size=2",
    "com.microsoft::Pad": "T[2,3], int64[4]={1,0,0,1}",
    "com.microsoft::QAttention": (
        "T1[1,2,8], T2[8,24], T3[24], T3[], T3[], T4[1]={2}, T1[]={0}, T2[]={0} | num_heads=2"
    ),
    "com.microsoft::Range": "T[]={0}, T[]={4}, T[]={2}",
    "com.microsoft::Unique": "T[4] -> 3",
    "com.microsoft::WordConvEmbedding": "T[1,2]={1,2}, T1[3,1,2,2], T1[3], T1[4,2]",
    "com.microsoft::MatMulBnb4": "T1[1,16], T2[16], T1[2] | K=16, N=2, block_size=16, quant_type=1",
    "com.microsoft::DynamicTimeWarping": "F[2,3]",
    "com.microsoft::SampleOp": "T[2]",
    "com.microsoft::QEmbedLayerNormalization": (
        "int32[1,2]={0,1}, int32[1,2]={0,1}, uint8[4,8], uint8[4,8], uint8[2,8], uint8[8], "
        "uint8[8], , T[]={0.1}, T[]={0.1}, T[]={0.1}, T[]={0.1}, T[]={0.1}, uint8[]={0}, "
        "uint8[]={0}, uint8[]={0}, uint8[]={0}, uint8[]={0} -> 2"
    ),
    "com.microsoft::BifurcationDetector": "T[3]={1,2,3}, T[3]={1,2,3}, T[]={0} -> 2",
    "com.microsoft::MoE": 'T[2,4], T[2,3], T[3,4,8], , T[3,8,4] | k=1, activation_type="relu"',
    "com.microsoft::DecoderMaskedMultiHeadAttention": "T[1,1,8], T[1,1,8], T[1,1,8] | num_heads=2",
}

WHOLE = {
    "If": (
        "(bool c, float[2] x) => (float[2] y) { y = If(c) <then_branch = t () => (float[2] a) "
        "{ a = Relu(x) }, else_branch = e () => (float[2] b) { b = Neg(x) }> }"
    ),
    "Loop": (
        "(float[2] x) => (float[2] y) <int64 n = {2}, bool c = {1}> { y = Loop(n, c, x) "
        "<body = b (int64 i, bool k, float[2] s) => (bool l, float[2] t) "
        "{ l = Identity(k) t = Neg(s) }> }"
    ),
    "Scan": (
        "(float[2] s, float[3,2] x) => (float[2] t, float[3,2] y) { t, y = Scan "
        "<num_scan_inputs = 1, body = b (float[2] a, float[2] v) => (float[2] c, float[2] w) "
        "{ c = Add(a, v) w = Identity(c) }> (s, x) }"
    ),
    "sequences": (
        "(float[2] x) => (z, e, o) <int64 at = {0}> { s = SequenceConstruct(x, x) "
        "t = SequenceInsert(s, x) u = SequenceErase(t, at) e = SequenceLength(u) "
        "z = ConcatFromSequence<axis=0>(u) o = SequenceAt(u, at) }"
    ),
    "a split into a sequence": (
        "(float[4] x) => (y) <int64 n = {2}, int64 at = {0}> "
        "{ s = SplitToSequence(x, n) y = SequenceAt(s, at) }"
    ),
    "an empty sequence": (
        "(float[2] x) => (y) { s = SequenceEmpty() t = SequenceInsert(s, x) y = SequenceLength(t) }"
    ),
    "optionals": (
        "(float[2] x) => (y, h) { o = Optional(x) y = OptionalGetElement(o) "
        "h = OptionalHasElement(o) }"
    ),
    "labels": (
        '<ir_version: 10, opset_import: ["ai.onnx.ml": 4]> g (float[2] x) => (y, z) '
        "{ y = ai.onnx.ml.LabelEncoder<keys_floats=[0.0,1.0], values_int64s=[3,4]>(x) "
        'z = ai.onnx.ml.LabelEncoder<keys_int64s=[3,4], values_strings=["a","b"]>(y) }'
    ),
    "numbers that are missing": (
        '<ir_version: 10, opset_import: ["ai.onnx.ml": 1]> g (float[1,2] x, int64[1,2] i) => (y, z)'
        "{ y = ai.onnx.ml.Imputer<imputed_value_floats=[0.0], replaced_value_float=1.0>(x) "
        "z = ai.onnx.ml.Imputer<imputed_value_int64s=[0], replaced_value_int64=1>(i) }"
    ),
    "an ensemble of trees": (
        '<ir_version: 10, opset_import: ["ai.onnx.ml": 5]> g (float[1,2] x) => (float[1,1] y) '
        "{ y = ai.onnx.ml.TreeEnsemble<n_targets=1, tree_roots=[0], nodes_featureids=[0], "
        "nodes_splits: tensor = float[1] {0.5}, nodes_modes: tensor = uint8[1] {0}, "
        "nodes_truenodeids=[0], nodes_trueleafs=[1], nodes_falsenodeids=[1], nodes_falseleafs=[1], "
        "leaf_targetids=[0,0], leaf_weights: tensor = float[2] {1.0, 2.0}>(x) }"
    ),
    "an activation at the only opset that has it": (
        '<ir_version: 10, opset_import: ["": 24]> g (float[2] x) => (y) { y = Swish(x) }'
    ),
}
"""Models of operators that need bodies, other types than tensors, or attributes of a dtype."""

OPENED = {
    "a map that is cast": (
        '<ir_version: 10, opset_import: ["ai.onnx.ml": 1]> g (map(int64, float) x) '
        "=> (float[1,2] y) "
        '{ y = ai.onnx.ml.CastMap<cast_to="TO_FLOAT", map_form="DENSE">(x) }'
    ),
    "a map that is a vector": (
        '<ir_version: 10, opset_import: ["ai.onnx.ml": 1]> g (map(int64, float) x) '
        "=> (float[1,2] y) "
        "{ y = ai.onnx.ml.DictVectorizer<int64_vocabulary=[1,2]>(x) }"
    ),
    "words": (
        '<ir_version: 10, opset_import: ["": 13, "com.microsoft": 1]> g (string[2] x) '
        "=> (float[1,2] y) "
        '{ a = com.microsoft.Tokenizer<mark=0, pad_value="#", mincharnum=1, tokenexp="[a-z]+">(x) '
        'b = Flatten<axis=0>(a) y = TfIdfVectorizer<mode="TF", min_gram_length=1, '
        "max_gram_length=1, max_skip_count=0, ngram_counts=[0], ngram_indexes=[0,1], "
        'pool_strings=["a","b"]>(b) }'
    ),
}
"""Models whose inputs nothing can make up: onnxruntime only opens them."""

TINY = {
    **{name: text for text, names in FAMILIES.items() for name in names.split()},
    **ALONE,
}

_NUMBERS = {dtype.name.lower(): int(dtype) for dtype in DataType}
_INPUT = re.compile(r"(?P<type>\w+)\[(?P<dims>[\d,]*)\](?:=\{(?P<held>.*)\})?")


def model_text(key: str, types: dict[str, str], opset: int) -> str:
    """Return the text of a tiny model with its type parameters bound to dtypes."""
    domain, _, op_type = key.rpartition("::")
    text, _, old = TINY[key].partition(" @")
    head, _, count = text.partition(" -> ")
    inputs, _, attributes = head.partition("|")
    declared, held, names = [], [], []
    for at, part in enumerate(part.strip() for part in re.split(r",\s+", inputs.strip() + " ")):
        found = _INPUT.fullmatch(part)
        if found is None:
            names.append("")
            continue
        name = f"in{at}"
        names.append(name)
        dims = f"[{found['dims']}]" if found["dims"] else ""
        typed = f"{types.get(found['type'], found['type'])}{dims} {name}"
        if found["held"] is None:
            declared.append(typed)
        else:
            held.append(f"{typed} = {{{found['held']}}}")
    for parameter, dtype in types.items():
        attributes = attributes.replace(f"{{{parameter}}}", str(_NUMBERS.get(dtype, dtype)))
    outputs = ", ".join(f"out{at}" for at in range(int(count or 1)))
    said = f"<{attributes.strip()}>" if attributes.strip() else ""
    imports = f'"": {old or opset}'
    if domain:
        imports += f', "{domain}": {3 if domain == "ai.onnx.ml" else 1}'
    return (
        f"<ir_version: 10, opset_import: [{imports}]> g ({', '.join(declared)}) => ({outputs}) "
        f"<{', '.join(held)}> {{ {outputs} = {domain + '.' if domain else ''}{op_type}{said}"
        f"({', '.join(names).rstrip(', ')}) }}"
    )
