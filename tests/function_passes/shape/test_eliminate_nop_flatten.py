from tiered.testing import assert_rewrites, assert_unchanged

PASS = "eliminate_nop_flatten"


def test_a_matrix_flattened_between_its_dims_is_itself() -> None:
    for axis in (1, -1):
        assert_rewrites(
            PASS,
            f"(float[N,M] x) => (float[N,M] y) {{ h = Flatten<axis={axis}>(x)  y = Relu(h) }}",
            "(float[N,M] x) => (float[N,M] y) { y = Relu(x) }",
        )


def test_a_matrix_flattened_beside_a_dim_of_1_is_itself() -> None:
    for shape, axis in (("1,M", 0), ("1,M", -2), ("N,1", 2)):
        assert_rewrites(
            PASS,
            f"(float[{shape}] x) => (float[{shape}] y) {{ h = Flatten<axis={axis}>(x)  y = Relu(h) }}",
            f"(float[{shape}] x) => (float[{shape}] y) {{ y = Relu(x) }}",
        )


def test_the_default_axis_counts_too_in_old_opsets() -> None:
    assert_rewrites(
        PASS,
        "(float[2,3] x) => (float[2,3] y) { h = Flatten(x)  y = Relu(h) }",
        "(float[2,3] x) => (float[2,3] y) { y = Relu(x) }",
        opset=7,
    )


def test_an_output_that_is_an_input_needs_a_node() -> None:
    assert_rewrites(
        PASS,
        "(float[2,3] x) => (float[2,3] y) { y = Flatten(x) }",
        "(float[2,3] x) => (float[2,3] y) { y = Identity(x) }",
    )


def test_a_row_is_made_of_a_matrix() -> None:
    assert_unchanged(
        PASS,
        "(float[N,3] x) => (float[1,M] y) { y = Flatten<axis=0>(x) }",
        because="a dim may change",
    )


def test_a_tensor_of_another_rank_becomes_a_matrix() -> None:
    assert_unchanged(
        PASS, "(float[2,3,1] x) => (float[2,3] y) { y = Flatten(x) }", because="x is not a matrix"
    )
    assert_unchanged(
        PASS,
        "(float[3] x) => (float[1,3] y) { y = Flatten<axis=0>(x) }",
        because="x is not a matrix",
    )


def test_an_unknown_rank_is_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[N] x, int64[K] s) => (float[A,B] y) { h = Reshape(x, s)  y = Flatten(h) }",
        because="the rank of x is not known",
    )


def test_an_axis_that_the_call_decides_is_left_alone() -> None:
    assert_unchanged(
        PASS,
        '<ir_version: 10, opset_import: ["" : 21, "l" : 1]>'
        " g (float[2,3] x) => (float[A,B] y) { y = l.f<axis=0>(x) }"
        ' <opset_import: ["" : 21], domain: "l"> f <axis> (a) => (b) { b = Flatten<axis: int = @axis>(a) }',
    )
