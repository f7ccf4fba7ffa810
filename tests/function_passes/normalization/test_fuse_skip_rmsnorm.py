import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_skip_rmsnorm"
ORT = "onnxruntime_cpu"
INPUTS = "float[N,4,8] x, float[N,4,8] z, float[8] s"
BOTH = "float[N,4,8] y, float[N,4,8] r"
FUSED = "y, m, v, t = com.microsoft.SkipSimplifiedLayerNormalization<epsilon=0.001>(x, z, s)"
SUM = "t = Add(x, z)"
NORM = (
    "p = Pow(t, two) m = ReduceMean(p, a) e = Add(m, eps) q = Sqrt(e)"
    " i = Div(one, q) n = Mul(t, i) y = Mul(s, n)"
)
SQUARED = (
    "p = Mul(t, t) m = ReduceMean(p, a) e = Add(m, eps) q = Sqrt(e) n = Div(t, q) y = Mul(n, s)"
)


def graph(
    nodes: str,
    inputs: str = INPUTS,
    outputs: str = BOTH,
    axis: str = "int64[1] a = {-1}",
    epsilon: str = "float eps = {0.001}",
) -> str:
    constants = [axis, epsilon, "float two = {2}", "float one = {1}", "float half = {-0.5}"]
    read = [text for text in constants if f"{text.split()[1]}" in nodes.replace("(", " ").replace(
        ")", " ").replace(",", " ").split()]  # fmt: skip
    return f"({inputs}) => ({outputs}) <{', '.join(read)}> {{ {nodes} }}"


BIAS = "float[8] c = {1,2,3,4,5,6,7,8}"


def test_a_bias_of_the_addend_is_a_fourth_operand() -> None:
    before = graph(f"k = Add(x, c) {SUM.replace('x', 'k')} {SQUARED} r = Relu(t)")
    fused = FUSED.replace("(x, z, s)", "(x, z, s, c)")
    assert_rewrites(
        PASS,
        before.replace("<int64", f"<{BIAS}, int64"),
        f"({INPUTS}) => ({BOTH}) <{BIAS}> {{ {fused} r = Relu(t) }}",
        opset=18,
        backend=ORT,
    )


POWER = "p = Pow(t, two) m = ReduceMean(p, a) e = Add(m, eps) i = Pow(e, half) n = Mul(t, i) y = Mul(s, n)"


@pytest.mark.parametrize("norm", [NORM, SQUARED, POWER])
def test_a_sum_is_normalised_and_still_read(norm: str) -> None:
    assert_rewrites(
        PASS,
        graph(f"{SUM} {norm} r = Relu(t)"),
        f"({INPUTS}) => ({BOTH}) {{ {FUSED} r = Relu(t) }}",
        opset=18,
        backend=ORT,
    )


def test_the_axis_is_an_attribute_in_old_opsets() -> None:
    norm = NORM.replace("ReduceMean(p, a)", "ReduceMean<axes=[-1]>(p)")
    assert_rewrites(
        PASS,
        graph(f"{SUM} {norm} r = Relu(t)"),
        f"({INPUTS}) => ({BOTH}) {{ {FUSED} r = Relu(t) }}",
        opset=17,
        backend=ORT,
    )


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (graph(f"t = Mul(x, z) {NORM} r = Relu(t)"), "the normalised value is not a sum"),
        (
            graph(
                f"{SUM} {NORM} r = Relu(t)",
                *(part.replace("N,4,8", "8") for part in (INPUTS, BOTH)),
            ),
            "the sum is not known to have 2 or 3 dims",
        ),
        (
            graph(f"{SUM} {NORM} r = Relu(t)", INPUTS.replace("[N,4,8] z", "[8] z")),
            "an addend is broadcast",
        ),
        (
            graph(f"{SUM} {NORM} r = Relu(t)", axis="int64[1] a = {1}"),
            "it is not over the last dim alone",
        ),
        (
            graph(f"{SUM} {NORM} r = Relu(t)", epsilon="float[4,1] eps = {1,2,3,4}"),
            "epsilon is not one positive number",
        ),
        (
            graph(f"{SUM} {NORM} r = Relu(t)", epsilon="float eps = {0}"),
            "epsilon is not one positive number",
        ),
        (
            graph(
                f"{SUM} {NORM} r = Relu(t)",
                outputs=BOTH.replace("[N,4,8] y", "[1,N,4,8] y"),
                epsilon="float[1,1,1,1] eps = {1}",
            ),
            "a constant adds dims to the sum",
        ),
        (
            graph(f"{SUM} {NORM} r = Relu(t)", INPUTS.replace("[8] s", "[1] s")),
            "the scale is not per element",
        ),
        (
            graph(f"s = Abs(k) {SUM} {NORM} r = Relu(t)", INPUTS.replace("[8] s", "[8] k")),
            "the scale is computed, perhaps from the sum",
        ),
    ],
)
def test_operands_that_the_kernel_rejects_stay(text: str, because: str) -> None:
    assert_unchanged(PASS, text, backend=ORT, because=because)


def test_other_targets_keep_the_sum() -> None:
    assert_unchanged(PASS, graph(f"{SUM} {NORM} r = Relu(t)"))


def test_a_power_of_more_dims_gives_the_sum_more_dims() -> None:
    assert_unchanged(
        PASS,
        "(float[1,3] p, float[1,3] q) => (float[1,1,3] y) <float[1,1,1] two = {2},"
        " int64[1] ax = {-1}, float e = {1}, float[3] w = {2,3,4}> { x = Add(p, q)"
        " s = Pow(x, two) v = ReduceMean(s, ax) ve = Add(v, e) r = Sqrt(ve) d = Div(x, r)"
        " y = Mul(d, w) }",
        backend=ORT,
        because="a constant adds dims to the sum",
    )


def test_rows_without_elements_are_not_normalised() -> None:
    text = (
        graph(f"{SUM} {NORM} r = Relu(t)").replace("4,8]", "4,0]").replace("float[8]", "float[0]")
    )
    assert_unchanged(
        PASS, text.replace("[N,", "[2,"), backend=ORT, because="there is nothing to normalise"
    )
