from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_not_into_where"


def test_the_branches_change_places() -> None:
    for dtype, runtime in (("int64", "onnxruntime"), ("float", "reference")):
        assert_rewrites(
            PASS,
            f"(bool[N] c, {dtype}[N] a, {dtype} b) => ({dtype}[N] y) {{ n = Not(c)  y = Where(n, a, b) }}",
            f"(bool[N] c, {dtype}[N] a, {dtype} b) => ({dtype}[N] y) {{ y = Where(c, b, a) }}",
            runtime=runtime,  # type: ignore[arg-type]  # the two are literals
        )


def test_a_not_that_others_read_stays() -> None:
    assert_unchanged(
        PASS,
        "(bool[N] c, float[N] a, float[N] b) => (float[N] y, bool[N] n) { n = Not(c)  y = Where(n, a, b) }",
        because="an inner value is a graph output",
    )
