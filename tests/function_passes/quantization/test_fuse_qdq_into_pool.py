import pytest

from tests.constants import spoken_of
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_qdq_into_pool"
ORT = "onnxruntime_cpu"
CONSTANTS = ("float s = {0.5}", "float t = {0.25}", "uint8 z = {3}", "uint8 u = {1}")
X = "d = DequantizeLinear(x, s, z)"
Q = "y = QuantizeLinear(m, t, u)"
POOL = "AveragePool<kernel_shape=[2,2], strides=[2,2], pads=[0,0,1,1], count_include_pad=1>"


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


def test_integers_of_a_picture_are_added() -> None:
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
        (f"d = Cast<to=1>(x) m = {POOL}(d) {Q}", "an operand is not dequantised"),
        (
            f"{X} m = AveragePool<kernel_shape=[2,2], dilations=[2,2]>(d) {Q}",
            "the windows have holes",
        ),
        (
            f"{X} m = AveragePool<kernel_shape=[2,2], strides=[2,2], ceil_mode=1>(d) {Q}",
            "a window may reach beyond the picture",
        ),
    ],
)
def test_what_the_kernel_does_not_compute_stays(nodes: str, because: str) -> None:
    assert_unchanged(PASS, graph(nodes), backend=ORT, because=because)


def test_a_sequence_stays() -> None:
    text = graph(f"{X} m = GlobalAveragePool(d) {Q}", "uint8[N,2,1]", "uint8[N,2,5]")
    assert_unchanged(PASS, text, backend=ORT, because="with 4 dims")


def test_a_count_that_a_call_decides_stays() -> None:
    text = """<ir_version: 10, opset_import: ["": 21, "local": 1]>
      g (uint8[1,1,4,4] x) => (uint8[1,1,3,3] y) { y = local.f<count=1>(x) }
      <domain: "local", opset_import: ["": 21]>
      f <count> (x) => (y) {
        s = Constant<value = float {0.5}>() d = DequantizeLinear(x, s)
        m = AveragePool<kernel_shape=[2,2], count_include_pad: int = @count>(d)
        y = QuantizeLinear(m, s) }"""
    assert_unchanged(PASS, text, backend=ORT, because="the call of the function decides")


def test_other_targets_keep_the_unit() -> None:
    assert_unchanged(PASS, graph(f"{X} m = GlobalAveragePool(d) {Q}", "uint8[N,2,1,1]"))
