import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_residual_into_conv"
ORT = "onnxruntime_cpu"
INPUTS = "float[N,2,5,5] x, float[2,2,3,3] w, float[2] b, float[N,2,5,5] z"
CONV = "c = Conv<pads=[1,1,1,1]>(x, w, b)"
FUSED = "com.microsoft.FusedConv<pads=[1,1,1,1]{}>"


def graph(nodes: str, inputs: str = INPUTS, outputs: str = "float[N,2,5,5] y") -> str:
    return f"({inputs}) => ({outputs}) {{ {nodes} }}"


def test_an_addend_is_fused_into_the_convolution() -> None:
    assert_rewrites(
        PASS,
        graph(f"{CONV} y = Add(c, z)"),
        graph(f"y = {FUSED.format('')}(x, w, b, z)"),
        backend=ORT,
    )


def test_then_the_activation() -> None:
    activation = ', activation="Relu"'
    assert_rewrites(
        PASS,
        graph(f"{CONV} a = Add(z, c) y = Relu(a)"),
        graph(f"y = {FUSED.format(activation)}(x, w, b, z)"),
        backend=ORT,
    )


def test_no_bias_is_needed() -> None:
    inputs = INPUTS.replace("float[2] b, ", "")
    assert_rewrites(
        PASS,
        graph("c = Conv<pads=[1,1,1,1]>(x, w) y = Add(c, z)", inputs),
        graph(f"y = {FUSED.format('')}(x, w, , z)", inputs),
        backend=ORT,
    )


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (
            graph(f"{CONV} y = Add(c, z)", INPUTS.replace("[N,2,5,5] z", "[1,2,1,1] z")),
            "the addend may be broadcast",
        ),
        (
            graph(
                'c = com.microsoft.FusedConv<pads=[1,1,1,1], activation="Tanh">(x, w, b, z)'
                " y = Relu(c)"
            ),
            "the convolution already has an activation",
        ),
        (
            "(float[1,1,1,1,1,1] x, float[1,1,1,1,1,1] w) => (float[1,1,1,1,1,1] y)"
            " { c = Conv(x, w) y = Add(c, x) }",
            "the number of spatial dims is unsupported",
        ),
    ],
)
def test_operands_unsupported_by_the_kernel_stay(text: str, because: str) -> None:
    assert_unchanged(PASS, text, backend=ORT, because=because)


def test_other_targets_keep_the_sum() -> None:
    assert_unchanged(PASS, graph(f"{CONV} y = Add(c, z)"))
