"""Axis maps of onnxruntime's own operators."""

from tests.analysis.axes.rules.maps import written


def test_the_iterators_of_the_operands_and_results() -> None:
    for text, opset, expected in (
        ("(float[2,3,4] x, float[4] b) => (float[A,B,C] y) { y = com.microsoft.BiasGelu(x, b) }",
         21, "0 1 2, 2 -> 0 1 2"),
        ("(float[2,3,4] x) => (float[A,B,C] y) { y = com.microsoft.FastGelu(x) }", 21,
         "0 1 2 -> 0 1 2"),
        ("(float[2,3,4] x, float[4] b) => (float[A,B,C] y) { y = com.microsoft.FastGelu(x, b) }",
         21, "0 1 2, 2 -> 0 1 2"),
        ("(float[2,3,4] x, float[4] g) => (float[A,B,C] y) { y = com.microsoft.FastGelu(x, ) }",
         21, "0 1 2 -> 0 1 2"),
        ("(float[2,3,4] x, float[4] g) => (float[A,B,C] y) { y = "
         "com.microsoft.SkipLayerNormalization(x, x, g, , g) }", 21,
          "0 1 2, 0 1 2, 2, -, 2 -> 0 1 2 | reduction 2 | broadcasts 1"),
        ("(float[2,3,9] x, float[4,3,3] w, float[4] b) => (float[A,B,C] y) { y = "
         "com.microsoft.FusedConv(x, w, b, ) }", 21,
          "0 3 2, 1 3 4, 1 -> 0 1 2 | reduction 3 4 5 | window 2: 1 0 3"),
        ("(float[3,4] x, float[5,4] w, float[5] b) => (float[A,B] y) { y = "
         "com.microsoft.FusedGemm<transB=1>(x, w, b) }", 21,
          "0 2, 1 2, 1 -> 0 1 | reduction 2 | broadcasts 2"),
        ("(float[2,3,4] x, float[2,4,5] w) => (float[A,B,C] y) { y = "
         "com.microsoft.FusedMatMul(x, w) }", 21, "0 1 2, 0 2 3 -> 0 1 3 | reduction 2 | "
         "broadcasts 0 1"),
        ("(float[2,4,3] x, float[4,5] w) => (float[A,B,C] y) { y = "
         "com.microsoft.FusedMatMul<transA=1>(x, w) }", 21,
          "0 2 1, 2 3 -> 0 1 3 | reduction 2 | broadcasts 0 1"),
        ("(float[2,3,4] x, float[5,4] w) => (float[A,B,C] y) { y = "
         "com.microsoft.FusedMatMul<transB=1>(x, w) }", 21,
          "0 1 2, 3 2 -> 0 1 3 | reduction 2 | broadcasts 0 1"),
        ("(float[2,3,4] x, float[2,4,5] w) => (float[A,B,C] y) { y = "
         "com.microsoft.FusedMatMul<transBatchA=1>(x, w) }", 21, "no: it transposes its batch"),
        ("(float[2,3,4] x, float[2,4,5] w) => (float[A,B,C] y) { y = "
         "com.microsoft.FusedMatMul<transBatchB=1>(x, w) }", 21, "no: it transposes its batch"),
        ("(float[2,3,4] x, float[4] w) => (float[A,B,C] y) { y = com.microsoft.FusedMatMul(x, "
         "w) }", 21, "no: an operand is a vector"),
        ("(float[2,3,9] x, float[4,3,3] w) => (float[A,B,C] y) { y = com.microsoft.FusedConv(x, "
         "w) }", 21, "0 3 2, 1 3 4 -> 0 1 2 | reduction 3 4 5 | window 2: 1 0 3"),
        ("(float[2,3,9] x, float[4,3,3] w, float[4] b, float[2,4,7] z) => (float[A,B,C] y) { y "
         "= com.microsoft.FusedConv(x, w, b, z) }", 21,
          "0 3 2, 1 3 4, 1, 0 1 2 -> 0 1 2 | reduction 3 4 5 | window 2: 1 0 3"),
        ("(float[2,3,9] x, float[4,3,3] w, float[2,4,7] z) => (float[A,B,C] y) { y = "
         "com.microsoft.FusedConv(x, w, , z) }", 21,
          "0 3 2, 1 3 4, -, 0 1 2 -> 0 1 2 | reduction 3 4 5 | window 2: 1 0 3"),
        ("(float[2,3,4] x, float[2,3,4] s, float[4] g, float[4] b) => (float[A,B,C] y) { y = "
         "com.microsoft.SkipLayerNormalization(x, s, g, b) }", 21,
          "0 1 2, 0 1 2, 2, 2 -> 0 1 2 | reduction 2 | broadcasts 1"),
        ("(float[2,3,4] x, float[3,4] s, float[4] g) => (float[A,B,C] y) { y = "
         "com.microsoft.SkipLayerNormalization(x, s, g) }", 21,
          "0 1 2, 1 2, 2 -> 0 1 2 | reduction 2 | broadcasts 1"),
        ("(float[2,3,4] x, float[1,3,4] s, float[4] g) => (float[A,B,C] y) { y = "
         "com.microsoft.SkipSimplifiedLayerNormalization(x, s, g) }", 21,
          "0 1 2, 0 1 2, 2 -> 0 1 2 | reduction 2 | broadcasts 1"),
        ("(float[2,3,4] x, float[2,3,4] s, float[4] g) => (float[2,3,4] y, float[2,3,4] t) { y, "
         "m, v, t = com.microsoft.SkipLayerNormalization(x, s, g) }", 21,
          "0 1 2, 0 1 2, 2 -> 0 1 2, 0 1 2, 0 1 2, 0 1 2 | reduction 2 | broadcasts 1"),
    ):  # fmt: skip
        assert written(text, opset) == expected, text
