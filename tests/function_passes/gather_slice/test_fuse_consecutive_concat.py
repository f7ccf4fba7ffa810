from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_consecutive_concat"


def test_all_are_joined_at_once() -> None:
    assert_rewrites(
        PASS,
        "(float[2] a, float[N] b, float[3] c) => (float[M] y)"
        " { h = Concat<axis=0>(b, c)  y = Concat<axis=0>(a, h, a) }",
        "(float[2] a, float[N] b, float[3] c) => (float[M] y) { y = Concat<axis=0>(a, b, c, a) }",
    )


def test_axes_are_compared_from_the_front() -> None:
    assert_rewrites(
        PASS,
        "(float[2,3] a, float[2,N] b) => (float[2,M] y)"
        " { h = Concat<axis=-1>(a, b)  i = Concat<axis=1>(h, a)  y = Concat<axis=-1>(b, i) }",
        "(float[2,3] a, float[2,N] b) => (float[2,M] y) { y = Concat<axis=-1>(b, a, b, a) }",
    )


def test_what_is_read_twice_here_is_spelled_out_twice() -> None:
    assert_rewrites(
        PASS,
        "(float[2] a, float[3] b) => (float[10] y) { h = Concat<axis=0>(a, b)  y = Concat<axis=0>(h, h) }",
        "(float[2] a, float[3] b) => (float[10] y) { y = Concat<axis=0>(a, b, a, b) }",
    )


def test_other_axes_are_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[2,3] a) => (float[4,6] y) { h = Concat<axis=1>(a, a)  y = Concat<axis=0>(h, h) }",
        because="the axes may differ",
    )


def test_an_inner_concat_that_cannot_be_joined_does_not_stop_the_others() -> None:
    assert_rewrites(
        PASS,
        "(float[2,3] a, float[1,6] b) => (float[4,6] y)"
        " { h = Concat<axis=1>(a, a)  i = Concat<axis=0>(b, b)  y = Concat<axis=0>(h, i) }",
        "(float[2,3] a, float[1,6] b) => (float[4,6] y)"
        " { h = Concat<axis=1>(a, a)  y = Concat<axis=0>(h, b, b) }",
    )
    assert_rewrites(
        PASS,
        "(float[2] a, float[1] b) => (float[6] y, float[4] z)"
        " { h = Concat<axis=0>(a, a)  i = Concat<axis=0>(b, b)  y = Concat<axis=0>(h, i)"
        " z = Relu(h) }",
        "(float[2] a, float[1] b) => (float[6] y, float[4] z)"
        " { h = Concat<axis=0>(a, a)  y = Concat<axis=0>(h, b, b)  z = Relu(h) }",
    )


def test_values_with_other_consumers_stay() -> None:
    for other in (
        "z = Relu(h)",
        "z = If(c) <then_branch = t () => (float[4] p) { p = Relu(h) }, else_branch = e () => (float[4] q) { q = Neg(h) }>",
    ):
        assert_unchanged(
            PASS,
            "(float[2] a, bool c) => (float[4] z, float[6] y)"
            f" {{ h = Concat<axis=0>(a, a)  y = Concat<axis=0>(h, a)  {other} }}",
            because="the inner result has other consumers",
        )


def test_a_concat_of_others_is_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[2] a) => (float[4] y) { b = Relu(a)  y = Concat<axis=0>(a, b) }",
        because="no input is a Concat of several",
    )


def test_what_a_body_alone_reads_is_computed_outside() -> None:
    assert_unchanged(
        PASS,
        "(float[2] a, bool c) => (float[N] y) { h = Concat<axis=0>(a, a)"
        " y = If(c) <then_branch = t () => (float[6] p) { p = Concat<axis=0>(h, a) },"
        " else_branch = e () => (float[2] q) { q = Identity(a) }> }",
        because="the inner result has other consumers",
    )


def test_doublings_are_not_flattened_without_end() -> None:
    many = ", ".join(["a"] * 600)
    assert_unchanged(
        PASS,
        f"(float[1] a) => (float[1200] y) {{ h = Concat<axis=0>({many}) y = Concat<axis=0>(h, h) }}",
        because="it would have more than 1024 inputs",
    )


def test_up_to_1024_inputs_are_joined_at_once() -> None:
    def model(count: int, nodes: str) -> str:
        parts = ", ".join(["x"] * count)
        return f"(float[2] x) => (float[N] y) {{ {nodes.replace('PARTS', parts)} }}"

    nodes = "a = Concat<axis=0>(PARTS)  y = Concat<axis=0>(a, x)"
    after = model(1024, "y = Concat<axis=0>(PARTS)")
    assert_rewrites(PASS, model(1023, nodes), after, runtime="none")
    assert_unchanged(PASS, model(1024, nodes), because="it would have more than 1024 inputs")
