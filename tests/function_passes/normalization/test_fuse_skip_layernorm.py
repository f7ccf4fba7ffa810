import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_skip_layernorm"
ORT = "onnxruntime_cpu"
INPUTS = "float[N,4,8] x, float[N,4,8] z, float[8] s, float[8] b"
SUM = "t = Add(x, z)"
NORM = "y = LayerNormalization<axis=-1, epsilon=0.001>(t, s, b)"


def graph(nodes: str, inputs: str = INPUTS, outputs: str = "float[N,4,8] y") -> str:
    return f"({inputs}) => ({outputs}) {{ {nodes} }}"


def test_a_sum_is_normalised_at_once() -> None:
    assert_rewrites(
        PASS,
        graph(f"{SUM} {NORM}"),
        graph("y = com.microsoft.SkipLayerNormalization<epsilon=0.001>(x, z, s, b)"),
        opset=17,
        backend=ORT,
    )


def test_the_default_epsilon_is_written() -> None:
    assert_rewrites(
        PASS,
        graph(f"{SUM} y = LayerNormalization<axis=2>(t, s)"),
        graph("y = com.microsoft.SkipLayerNormalization<epsilon=0.00001>(x, z, s)"),
        backend=ORT,
    )


@pytest.mark.parametrize(
    ("reader", "outputs"),
    [
        ("r = Relu({})", "float[N,4,8] y, float[N,4,8] r"),
        ("t2 = LayerNormalization({}, b) r = Add(t2, {})", "float[N,4,8] y, float[N,4,8] r"),
    ],
)
def test_other_users_of_the_sum_read_the_fourth_output(reader: str, outputs: str) -> None:
    fused = "y, m, v, t = com.microsoft.SkipLayerNormalization<epsilon=0.001>(x, z, s, b)"
    assert_rewrites(
        PASS,
        graph(f"{SUM} {NORM} {reader.replace('{}', 't')}", outputs=outputs),
        graph(f"{fused} {reader.replace('{}', 't')}", outputs=outputs),
        backend=ORT,
    )


BIAS = "<float[8] c = {1,2,3,4,5,6,7,8}>"


@pytest.mark.parametrize("added", ["k = Add(x, c) t = Add(k, z)", "k = Add(c, z) t = Add(x, k)"])
def test_a_bias_of_the_addend_is_a_third_operand(added: str) -> None:
    fused = "y = com.microsoft.SkipLayerNormalization<epsilon=0.001>(x, z, s, b, c)"
    assert_rewrites(
        PASS,
        graph(f"{added} {NORM}").replace("{", f"{BIAS} {{", 1),
        graph(fused).replace("{", f"{BIAS} {{", 1),
        backend=ORT,
    )


@pytest.mark.parametrize("c", ["float[1] c = {1}", "float[4,1] c = {1,2,3,4}"])
def test_an_addend_that_is_not_a_vector_stays(c: str) -> None:
    fused = "y = com.microsoft.SkipLayerNormalization<epsilon=0.001>(k, z, s, b)"
    assert_rewrites(
        PASS,
        graph(f"k = Add(x, c) {SUM.replace('x', 'k')} {NORM}").replace("{", f"<{c}> {{", 1),
        graph(f"k = Add(x, c) {fused}").replace("{", f"<{c}> {{", 1),
        backend=ORT,
    )


def test_the_sum_may_be_an_output() -> None:
    outputs = "float[N,4,8] y, float[N,4,8] t"
    assert_rewrites(
        PASS,
        graph(f"{SUM} {NORM}", outputs=outputs),
        graph(
            "y, m, v, t = com.microsoft.SkipLayerNormalization<epsilon=0.001>(x, z, s, b)",
            outputs=outputs,
        ),
        backend=ORT,
    )


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (
            graph(f"{SUM} {NORM}", INPUTS.replace("N,4,8", "4"), "float[4] y"),
            "the sum is not known to have 2 or 3 dims",
        ),
        (
            graph(f"{SUM} {NORM}", INPUTS.replace("[N,4,8] z", "[8] z")),
            "an addend is broadcast",
        ),
        (
            graph(f"{SUM} y = LayerNormalization<axis=1>(t, s, b)"),
            "it is not over the last dim alone",
        ),
        (
            graph(f"{SUM} {NORM}", INPUTS.replace("[8] s", "[1] s")),
            "scale or bias is not per element",
        ),
        (
            graph(
                f"{SUM} i = ReduceMean<keepdims=0>(t, a) s = Expand(i, e) {NORM}",
                "float[N,4,8] x, float[N,4,8] z, float[8] b",
            ).replace("{", "<int64[3] a = {0,1,2}, int64[1] e = {8}> {", 1),
            "scale or bias is computed, perhaps from the sum",
        ),
    ],
)
def test_operands_that_the_kernel_rejects_stay(text: str, because: str) -> None:
    assert_unchanged(PASS, text, backend=ORT, because=because)


def test_other_targets_keep_the_sum() -> None:
    assert_unchanged(PASS, graph(f"{SUM} {NORM}"))


@pytest.mark.parametrize("outputs", ["y, m", "y, e, m"])
def test_a_mean_with_other_consumers_stays(outputs: str) -> None:
    norm = NORM.replace("y =", f"{outputs} =")
    assert_unchanged(
        PASS,
        graph(f"{SUM} {norm}", outputs="float[N,4,8] y, float[N,4,1] m"),
        backend=ORT,
        because="the mean or deviation has other consumers",
    )
