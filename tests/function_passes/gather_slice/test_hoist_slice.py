import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "hoist_slice"
CUT = "int64[1] b = {1}, int64[1] e = {2}"


@pytest.mark.parametrize("f", ["Relu", "Abs", "Neg", "Sqrt", "Ceil"])
def test_fewer_elements_are_computed(f: str) -> None:
    assert_rewrites(
        PASS,
        f"(float[4,N] x) => (float[1,N] y) <{CUT}> {{ h = {f}(x)  y = Slice(h, b, e) }}",
        f"(float[4,N] x) => (float[1,N] y) <{CUT}> {{ h = Slice(x, b, e)  y = {f}(h) }}",
    )


def test_it_passes_several_operators() -> None:
    assert_rewrites(
        PASS,
        "(float[4,3] x) => (bool[3] y) <int64 i = {1}, float c = {2}>"
        " { g = Relu(x)  h = Less(g, c)  y = Gather(h, i) }",
        "(float[4,3] x) => (bool[3] y) <int64 i = {1}, float c = {2}>"
        " { g = Gather(x, i)  h = Relu(g)  y = Less(h, c) }",
    )


def test_operands_that_broadcast_along_the_axis_stay() -> None:
    text = "(float[4,3] x, float[3] z, float[4,1] c) => (float[1,3] y) "
    assert_rewrites(
        PASS,
        text + f"<{CUT}> {{ h = Add(x, z)  y = Slice(h, b, e) }}",
        text + f"<{CUT}> {{ h = Slice(x, b, e)  y = Add(h, z) }}",
    )


def test_constants_are_cut() -> None:
    held = "int64 i = {1}, float[2,3] c = {1,2,3,4,5,6}"
    assert_rewrites(
        PASS,
        f"(float[2,3] x) => (float[2] y) <{held}> {{ h = Mul(x, c)  y = Gather<axis=1>(h, i) }}",
        f"(float[2,3] x) => (float[2] y) <{held}>"
        " { g = Gather<axis=1>(x, i)  k = Gather<axis=1>(c, i)  y = Mul(g, k) }",
    )


def test_both_operands_may_be_the_same() -> None:
    assert_rewrites(
        PASS,
        f"(float[4] x) => (float[1] y) <{CUT}> {{ h = Mul(x, x)  y = Slice(h, b, e) }}",
        f"(float[4] x) => (float[1] y) <{CUT}> {{ h = Slice(x, b, e)  y = Mul(h, h) }}",
    )


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (f"(float[4] x) => (float[1] y, float[4] h) <{CUT}> {{ h = Relu(x)  y = Slice(h, b, e) }}",
         "the operator has other consumers"),
        (f"(float[4] x, float[4] z) => (float[1] y) <{CUT}> {{ h = Add(x, z)  y = Slice(h, b, e) }}",
         "several operands would be cut"),
        ("(float[4,3] x, float[4,1] z) => (float[1,1] y) <int64[2] b = {0,0}, int64[2] e = {1,1}>"
         " { h = Add(x, z)  y = Slice(h, b, e) }", "an operand has some of the selected dims only"),
        ("(float[2,3] x, float[3,4] w) => (float[1,4] y) <int64[1] b = {1}, int64[1] e = {2}>"
         " { g = MatMul(x, w)  h = Relu(g)  y = Slice(h, b, e) }",
         "runtimes fuse the operator with a product"),
        ("(float[] x) => (float[] y) <int64 i = {1}> { h = Relu(x)  y = Gather(h, i) }",
         "the shape of what is selected from is not known"),
        ("(float[4] x, int64 i) => (float y) { h = Relu(x)  y = Gather(h, i) }",
         "the axes or the indices are not constant"),
        ("(float[4] x) => (float[1,1] y) <int64[1,1] i = {1}> { h = Relu(x)  y = Gather(h, i) }",
         "the indices have several dims"),
        ("(float[N] x) => (float y) <int64 i = {0}> { h = Relu(x)  y = Gather(h, i) }",
         "how much it selects is not known"),
        ("(float[2] x) => (float[2] y) <int64[2] i = {1,0}> { h = Relu(x)  y = Gather(h, i) }",
         "it selects no fewer elements"),
        ("(float[3] x) => (bool[2] y) <int64[1] b = {0}, int64[1] e = {2}>"
         " { h = IsNaN(x)  y = Slice(h, b, e) }", "it would move more bytes"),
    ],
)  # fmt: skip
def test_others_stay(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because)


def test_operators_whose_kernels_know_the_place_stay() -> None:
    for f in ("Exp", "Tanh", "Softmax"):
        assert_unchanged(
            PASS, f"(float[4] x) => (float[1] y) <{CUT}> {{ h = {f}(x)  y = Slice(h, b, e) }}"
        )


def test_an_attribute_of_a_function_stays() -> None:
    assert_unchanged(
        PASS,
        '<ir_version: 10, opset_import: ["" : 21, "d" : 1]>'
        " g (float[4] x) => (float[1] y) { y = d.f<a=0.5>(x) }"
        ' <domain: "d", opset_import: ["" : 21]> f <a> (x) => (y) {'
        " h = LeakyRelu<alpha: float = @a>(x) b = Constant<value_ints=[1]>()"
        " e = Constant<value_ints=[2]>() y = Slice(h, b, e) }",
        because="attribute 'alpha' is a function parameter",
    )


@pytest.mark.parametrize("dtype", ["float8e4m3fn", "int4"])
@pytest.mark.parametrize("select", ["Slice(h, a, b)", "Gather(h, a)"])
def test_few_operators_select_narrow_numbers(dtype: str, select: str) -> None:
    assert_unchanged(
        PASS,
        f"({dtype}[4,3] x) => (float[1,3] y) <int64[1] a = {{0}}, int64[1] b = {{1}}>"
        f" {{ h = Cast<to=1>(x)  y = {select} }}",
        because="does not take the dtype of the operand",
    )


def test_a_nan_of_uint32_differs_by_its_place() -> None:
    assert_unchanged(
        PASS,
        "(float[40,3] x) => (uint32[3] y) <int64 i = {0}> { h = Cast<to=12>(x)  y = Gather(h, i) }",
        because="a number that fits no integer differs by its place",
    )
