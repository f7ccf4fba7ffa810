import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_conv_activation"
ORT = "onnxruntime_cpu"
INPUTS = "float[N,2,5,5] x, float[3,2,3,3] w, float[3] b"
IMAGE = f"({INPUTS}) => (float[N,3,5,5] y)"
CONV = "c = Conv<pads=[1,1,1,1]>(x, w, b)"


@pytest.mark.parametrize(
    ("activation", "written"),
    [
        ("Relu(c)", 'activation="Relu"'),
        ("Sigmoid(c)", 'activation="Sigmoid"'),
        ("Tanh(c)", 'activation="Tanh"'),
        ("LeakyRelu(c)", 'activation="LeakyRelu", activation_params=[0.01]'),
        (
            "HardSigmoid<alpha=0.5, beta=0.25>(c)",
            'activation="HardSigmoid", activation_params=[0.5, 0.25]',
        ),
    ],
)
def test_an_activation_goes_into_the_convolution(activation: str, written: str) -> None:
    assert_rewrites(
        PASS,
        f"{IMAGE} {{ {CONV} y = {activation} }}",
        f"{IMAGE} {{ y = com.microsoft.FusedConv<pads=[1,1,1,1], {written}>(x, w, b) }}",
        backend=ORT,
    )


def test_a_clip_is_fused_with_its_limits() -> None:
    settings = 'activation="Clip", activation_params=[0.0, 6.0]'
    assert_rewrites(
        PASS,
        f"{IMAGE} <float l = {{0}}, float h = {{6}}> {{ {CONV} y = Clip(c, l, h) }}",
        f"{IMAGE} {{ y = com.microsoft.FusedConv<pads=[1,1,1,1], {settings}>(x, w, b) }}",
        backend=ORT,
    )


def test_no_bias_is_needed() -> None:
    image = "(float[N,2,5] x, float[3,2,3] w) => (float[N,3,3] y)"
    assert_rewrites(
        PASS,
        f"{image} {{ c = Conv(x, w) y = Relu(c) }}",
        f'{image} {{ y = com.microsoft.FusedConv<activation="Relu">(x, w) }}',
        opset=11,
        backend=ORT,
    )


def test_one_after_the_other() -> None:
    image = "(float[N,3,5,5] x, float[3,3,1,1] w) => (float[N,3,5,5] y)"
    conv = 'com.microsoft.FusedConv<activation="Relu">'
    assert_rewrites(
        PASS,
        f"{image} {{ c = Conv(x, w) r = Relu(c) d = Conv(r, w) y = Relu(d) }}",
        f"{image} {{ r = {conv}(x, w) y = {conv}(r, w) }}",
        backend=ORT,
    )


def test_an_image_of_unknown_rank_stays() -> None:
    assert_unchanged(
        PASS,
        "(float x, float[1,1,1,1,1,1] w) => (float[1,1,1,1,1,1] y) { e = Expand(x, s)"
        " c = Conv(e, w) y = Relu(c) }".replace("{ e", "<int64[6] s = {1,1,1,1,1,1}> { e"),
        backend=ORT,
        because="the number of spatial dims is unsupported",
    )


def test_a_result_with_other_consumers_stays() -> None:
    text = f"({INPUTS}) => (float[N,3,5,5] y, float[N,3,5,5] c) {{ {CONV} y = Relu(c) }}"
    assert_unchanged(PASS, text, backend=ORT)


def test_other_targets_keep_the_activation() -> None:
    assert_unchanged(PASS, f"{IMAGE} {{ {CONV} y = Relu(c) }}")


@pytest.mark.parametrize(
    "limits", ["float[2] l = {0, 1}, float h = {6}", "float l = {0}, float[0] h = {}"]
)
def test_a_limit_of_several_numbers_is_left_alone(limits: str) -> None:
    assert_unchanged(
        PASS,
        f"{IMAGE} <{limits}> {{ {CONV} y = Clip(c, l, h) }}",
        because="a limit is not one number",
        backend=ORT,
    )
