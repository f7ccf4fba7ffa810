import onnx
import onnxruntime
import pytest

from tests.constants import spoken_of
from tiered import PassContext, Sequential, get_pass
from tiered.runtime import make_inputs
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "fuse_qdq_into_pool"
ORT = "onnxruntime_cpu"
CONSTANTS = ("float s = {0.5}", "float t = {0.25}", "uint8 z = {3}", "uint8 u = {1}")
X = "d = DequantizeLinear(x, s, z)"
Q = "y = QuantizeLinear(m, t, u)"
POOL = "AveragePool<kernel_shape=[2,2], strides=[2,2], pads=[0,0,1,1], count_include_pad=1>"

MISCOUNTED = (
    "AveragePool<kernel_shape=[2,2], strides=[2,2], pads=[?], ceil_mode=1, count_include_pad=1>"
)


def graph(nodes: str, y: str = "uint8[N,2,3,3]", x: str = "uint8[N,2,5,5]") -> str:
    return f"({x} x) => ({y} y) {spoken_of(nodes, *CONSTANTS)} {{ {nodes} }}"


def test_integers_of_windows_are_added() -> None:
    written = POOL.replace("AveragePool", "QLinearAveragePool")
    assert_rewrites(
        PASS,
        graph(f"{X} m = {POOL}(d) {Q}"),
        graph(f"y = com.microsoft.{written}(x, s, z, t, u)"),
        backend=ORT,
    )


def test_a_vector_of_one_scale_becomes_a_scalar() -> None:
    image = "(uint8[N,2,5,5] x) => (uint8[N,2,3,3] y)"
    written = POOL.replace("AveragePool", "QLinearAveragePool")
    assert_rewrites(
        PASS,
        f"{image} <float[1] s = {{0.5}}, uint8[1] z = {{3}}, float t = {{0.25}}, uint8 u = {{1}}>"
        f" {{ {X} m = {POOL}(d) {Q} }}",
        graph(f"y = com.microsoft.{written}(x, s, z, t, u)"),
        backend=ORT,
    )


@pytest.mark.parametrize(
    ("settings", "written"),
    [
        ("ceil_mode=1", "ceil_mode=1"),
        ("pads=[0,0,1,0], ceil_mode=1", "pads=[0,0,1,0], ceil_mode=1"),
        # No padding, nothing to count.
        ("ceil_mode=1, count_include_pad=1", "ceil_mode=1, count_include_pad=0"),
        (
            'auto_pad="VALID", ceil_mode=1, count_include_pad=1',
            'auto_pad="VALID", ceil_mode=1, count_include_pad=0',
        ),
        # All windows end where the padding does.
        (
            "pads=[0,0,1,1], ceil_mode=1, count_include_pad=1",
            "pads=[0,0,1,1], ceil_mode=0, count_include_pad=1",
        ),
    ],
)
def test_windows_beyond_the_padding_are_counted_correctly(settings: str, written: str) -> None:
    window = f"kernel_shape=[2,2], strides=[2,2], {settings}"
    made = f"kernel_shape=[2,2], strides=[2,2], {written}"
    text = graph(f"{X} m = AveragePool<{window}>(d) {Q}")
    before = parse(text)
    assert_rewrites(
        PASS,
        text,
        graph(f"y = com.microsoft.QLinearAveragePool<{made}>(x, s, z, t, u)"),
        backend=ORT,
    )
    with PassContext(opt_level=3, backend=ORT):
        after = get_pass(PASS)(before)
    assert [node.op_type for node in after.graph.node] == ["QLinearAveragePool"]
    assert _max_difference(before, after) <= 1


def test_onnxruntime_miscounts_the_unit_that_stays() -> None:
    """Its own fusion makes what this pass declines: the profile says so of the unit."""
    model = parse(graph(f"{X} m = {MISCOUNTED.replace('?', '0,0,1,0')}(d) {Q}"))
    assert _max_difference(model, model) > 1, "onnxruntime counts correctly: drop the condition"
    with PassContext(opt_level=0, backend=ORT) as ctx:
        Sequential(["final_check"])(model)
    (remark,) = (str(remark) for remark in ctx.remarks if remark.kind == "missed")
    assert "AveragePool" in remark
    assert "miscounts windows beyond the padding" in remark


def _max_difference(model: onnx.ModelProto, other: onnx.ModelProto) -> int:
    """Return how far results are from each other: of onnxruntime as is, and with its optimiser."""
    feeds = make_inputs(model).feeds
    results = []
    for proto, level in ((model, "ORT_DISABLE_ALL"), (other, "ORT_ENABLE_ALL")):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
        session = onnxruntime.InferenceSession(
            proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        results.append(session.run(None, feeds)[0].astype(int))
    return int(abs(results[0] - results[1]).max())


def test_integers_of_an_image_are_added() -> None:
    written = "y = com.microsoft.QLinearGlobalAveragePool<channels_last=0>(x, s, z, t, u)"
    assert_rewrites(
        PASS,
        graph(f"{X} m = GlobalAveragePool(d) {Q}", "uint8[N,2,1,1]"),
        graph(written, "uint8[N,2,1,1]"),
        backend=ORT,
    )


@pytest.mark.parametrize(
    ("nodes", "because"),
    [
        (f"d = Cast<to=1>(x) m = {POOL}(d) {Q}", "an operand has no DequantizeLinear"),
        (
            f"{X} m = AveragePool<kernel_shape=[2,2], dilations=[2,2]>(d) {Q}",
            "the windows are dilated",
        ),
        (
            f"{X} m = {MISCOUNTED.replace('?', '0,0,1,0')}(d) {Q}",
            "onnxruntime miscounts windows beyond the padding",
        ),
        (
            f'{X} m = AveragePool<kernel_shape=[2,2], strides=[2,2], auto_pad="SAME_UPPER", '
            f"ceil_mode=1, count_include_pad=1>(d) {Q}",
            "auto_pad depends on the size of x",
        ),
    ],
)
def test_operands_unsupported_by_the_kernel_stay(nodes: str, because: str) -> None:
    assert_unchanged(PASS, graph(nodes), backend=ORT, because=because)


@pytest.mark.parametrize("scale", ["256", "0.0009"])
def test_scales_that_are_far_apart_stay(scale: str) -> None:
    """The kernel fails where its factor is not from 2**-32 to 256."""
    text = graph(f"{X} m = GlobalAveragePool(d) {Q}", "uint8[N,2,1,1]")
    text = text.replace("float s = {0.5}", f"float s = {{{scale}}}")
    assert_unchanged(PASS, text, backend=ORT, because="the scales are too far apart")


def test_an_image_of_many_pixels_stays() -> None:
    text = graph(f"{X} m = GlobalAveragePool(d) {Q}", "uint8[1,1,1,1]", "uint8[1,1,4096,4096]")
    assert_unchanged(PASS, text, backend=ORT, because="too many pixels for the kernel")


def test_a_sequence_stays() -> None:
    text = graph(f"{X} m = GlobalAveragePool(d) {Q}", "uint8[N,2,1]", "uint8[N,2,5]")
    assert_unchanged(PASS, text, backend=ORT, because="x is not known to have 4 dims")


def test_other_targets_keep_the_unit() -> None:
    assert_unchanged(PASS, graph(f"{X} m = GlobalAveragePool(d) {Q}", "uint8[N,2,1,1]"))
