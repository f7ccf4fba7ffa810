import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_blocks_into_matmul"
ORT = "onnxruntime_cpu"


def halves(*numbers: int) -> str:
    """Return numbers of 4 bits two a byte, the first one low: so texts of models hold them too."""
    pairs = zip(numbers[::2], numbers[1::2], strict=True)
    return ",".join(str((low & 15) | (high & 15) << 4) for low, high in pairs)


# Two blocks of 16 rows and 2 columns: down the first column 0, 1, ... 7, down the second 7, 6, ...
FIRST, SECOND = [row % 8 for row in range(32)], [7 - row % 8 for row in range(32)]
ROWS = halves(*(number for pair in zip(FIRST, SECOND, strict=True) for number in pair))
COLUMNS = halves(*FIRST, *SECOND)
SHIFTED = halves(*(number + 8 for number in (*FIRST, *SECOND)))
SCALES = "float[2,2] s = {0.5,0.25, 1,2}"


def graph(
    dtype: str = "uint4", zero: str = "", call: str = "", scales: str = SCALES, x: str = "N,3,32"
) -> str:
    integers = ROWS if dtype.endswith("int4") else ",".join(["1"] * 64)
    constants = f"{dtype}[32,2] q = {{{integers}}}, {scales}{zero}"
    call = call or f"DequantizeLinear<axis=0, block_size=16>(q, s{', z' if zero else ''})"
    dims = f"{x.rpartition(',')[0]},2".lstrip(",")
    return f"(float[{x}] x) => (float[{dims}] y) <{constants}> {{ d = {call} y = MatMul(x, d) }}"


def zeros(dtype: str, *numbers: int) -> str:
    return f", {dtype}[2,2] z = {{{halves(*numbers)}}}"


def fused(weight: str, zero: str = "") -> str:
    sizes = f"K=32, N=2, bits=4, block_size=16>(x, w, s{', z' if zero else ''}"
    constants = f"uint8[2,2,8] w = {{{weight}}}, float[2,2] s = {{0.5,1, 0.25,2}}{zero}"
    call = f"com.microsoft.MatMulNBits<{sizes})"
    return f"(float[N,3,32] x) => (float[N,3,2] y) <{constants}> {{ y = {call} }}"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # Two zero points a byte: those of the two blocks of a column.
        (
            graph(zero=zeros("uint4", 3, 1, 4, 15)),
            fused(COLUMNS, f", uint8[2,1] z = {{{halves(3, 4, 1, 15)}}}"),
        ),
        (graph(), fused(COLUMNS, ", uint8[2,1] z = {0, 0}")),
        (graph(zero=zeros("uint4", 8, 8, 8, 8)), fused(COLUMNS)),
        (graph("int4"), fused(SHIFTED)),
        (graph(x="N,32"), fused(COLUMNS, ", uint8[2,1] z = {0, 0}").replace("[N,3,", "[N,")),
        (
            graph("int4", zeros("int4", -8, 1, 2, 7)),
            fused(SHIFTED, f", uint8[2,1] z = {{{halves(0, 10, 9, 15)}}}"),
        ),
    ],
)
def test_blocks_are_dequantised_as_they_are_read(before: str, after: str) -> None:
    assert_rewrites(PASS, before, after, backend=ORT)


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (graph("uint8"), "the integers are not a 4-bit matrix"),
        (graph("int8"), "the integers are not a 4-bit matrix"),
        (
            graph(
                call="DequantizeLinear<axis=0, block_size=8>(q, s)",
                scales="float[4,2] s = {1,1,1,1,1,1,1,1}",
            ),
            "the block size is unsupported",
        ),
        (graph(x="32"), "x is not known to have matrices"),
        (
            graph()
            .replace("y = Mat", "e = DequantizeLinear(q, one) y = Mat")
            .replace("y) <", "y, float[32,2] e) <float one = {1}, "),
            "the integers have other consumers",
        ),
        (
            graph().replace(SCALES, "float one = {1}").replace(" x) =>", " x, float[2,2] s) =>"),
            "integers, scales or zero points are not constant",
        ),
        (
            graph(call="DequantizeLinear<axis=0, block_size=32>(q, s)"),
            "the block size does not divide the rows",
        ),
    ],
)
def test_matrices_unsupported_by_the_kernel_stay(text: str, because: str) -> None:
    assert_unchanged(PASS, text, backend=ORT, because=because)


def test_blocks_along_the_columns_stay() -> None:
    call = "DequantizeLinear<axis=1, block_size=2>(q, s)"
    scales = f"float[32,1] s = {{{','.join(['1'] * 32)}}}"
    assert_unchanged(PASS, graph(call=call, scales=scales), backend=ORT)


def test_one_scale_for_all_stays() -> None:
    text = graph(call="DequantizeLinear<axis=0>(q, s)", scales="float s = {0.5}")
    assert_unchanged(PASS, text, backend=ORT, because="the block size is unsupported")


def test_other_targets_keep_the_parts() -> None:
    assert_unchanged(PASS, graph())
