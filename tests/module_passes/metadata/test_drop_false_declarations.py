import onnx
import pytest

from tests.rollback import assert_undone
from tiered import ModelError, optimize, optimize_model
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "drop_false_declarations"

CHOICE = (
    "w = If(true) <then_branch = t2 () => (float[?] r) { r = Neg(x) },"
    " else_branch = e2 () => (float[?] s) { s = Concat<axis=0>(x, x) }>"
)
"""What onnx does not infer a size of, until the branch is chosen."""

MODELS = {
    "a branch": "(bool c, float[4] x) => (float[?] y) <bool true = {1}> { y = If(c) <"
    f"then_branch = t () => (float[5] u) {{ {CHOICE} u = Abs(w) }},"
    " else_branch = e () => (float[?] q) { q = Exp(x) }> }",
    "a value of a branch": "(bool c, float[4] x) => (float[?] y) <bool true = {1}> { y = If(c) <"
    f"then_branch = t () => (float[?] u) <float[5] v> {{ {CHOICE} v = Abs(w) u = Sin(v) }},"
    " else_branch = e () => (float[?] q) { q = Exp(x) }> }",
    "a Loop": "(int64 n, bool c, float[4] x) => (float[?,?] y) <bool true = {1}> {"
    " y = Loop(n, c) <body = b (int64 i, bool g) => (bool h, float[5] u)"
    f" {{ h = Identity(g) {CHOICE} u = Abs(w) }}> }}",
    "a Scan": "(float[3,4] z, float[4] x) => (float[?,?] y) <bool true = {1}> {"
    " y = Scan<num_scan_inputs = 1, body = b (float[4] v) => (float[5] u)"
    f" {{ {CHOICE} u = Abs(w) }}>(z) }}",
    "the main graph": "(float[4] x) => (float[?] y) <bool true = {1}, float[5] u>"
    f" {{ {CHOICE} u = Abs(w) y = Sin(u) }}",
}


def test_a_declaration_of_another_size_goes() -> None:
    assert_rewrites(
        PASS,
        "(bool c, float[2,2] x) => (float[?] y) <int64[1] s = {-1}, float[3] v> {"
        " u = Reshape(x, s) v = Abs(u) y = Sin(v) }",
        "(bool c, float[2,2] x) => (float[?] y) <int64[1] s = {-1}> {"
        " u = Reshape(x, s) v = Abs(u) y = Sin(v) }",
    )


@pytest.mark.parametrize("place", MODELS)
@pytest.mark.parametrize("level", range(5))
def test_issue_40_a_false_size_in_a_body_is_no_refusal(place: str, level: int) -> None:
    model = parse(MODELS[place])
    onnx.checker.check_model(model, full_check=True)
    made = optimize(model, opt_level=level)
    onnx.checker.check_model(made, full_check=True)
    assert ("dim_value: 5" in str(made.graph)) == (level == 0)  # there it is not known


def test_a_remark_names_what_was_dropped() -> None:
    result = optimize_model(parse(MODELS["a branch"]), opt_level=1)
    (remark,) = [str(each) for each in result.remarks if "dropped the decl" in str(each)]
    assert "dropped the declaration of 'u': float[5], and it is float[4]" in remark


@pytest.mark.parametrize(
    ("declared", "more"),
    [("float[4] a", ""), ("float[4] a, float[4] b", ", and 1 more"),
     ("float[4] a, float[4] b, float[4] c", ", and 2 more")],
)  # fmt: skip
def test_the_first_is_named_and_the_others_are_counted(declared: str, more: str) -> None:
    text = f"(float[2] x) => (float[2] y) <{declared}> {{ a = Neg(x) b = Neg(a) c = Neg(b) y = Neg(c) }}"
    result = optimize_model(parse(text), opt_level=0)
    (remark,) = [str(each) for each in result.remarks if "dropped the decl" in str(each)]
    said = "dropped the declaration of 'a': float[4], and it is float[2]"
    assert remark.endswith(f"{said}{more}")


def test_true_and_open_declarations_and_the_interface_stay() -> None:
    assert_unchanged(
        PASS,
        "(bool c, float[4] x) => (float[?] y) <float[n] v, float[4] u> { u = Neg(x) v = Abs(u)"
        " y = If(c) <then_branch = t () => (float[4] p) { p = Sin(v) },"
        " else_branch = e () => (float[?] q) { q = Exp(x) }> }",
    )


def test_strict_keeps_them_and_refuses() -> None:
    with pytest.raises(ModelError, match="contradict"):
        optimize(parse(MODELS["the main graph"]), opt_level=1, strict=True)


def test_it_is_undone() -> None:
    made = assert_undone(
        PASS,
        MODELS["a branch"]
        .replace("If(true)", "If(c)")
        .replace("s = Concat<axis=0>(x, x)", "s = Abs(x)"),
    )
    assert "dim_value: 5" not in str(made.graph)
