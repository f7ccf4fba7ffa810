"""Expectations of a result: how they are written, which names exist, and why one does not hold."""

from collections.abc import Sequence

import pytest

from tests.small import parsed
from tiered import Sequential, get_backend, get_pass
from tiered.passes.interface.report import Remark
from tiered.pipeline.expectations import (
    Expectation,
    check_expectations,
    check_names,
    makers_of,
    parse_expectations,
)
from tiered.pipeline.result import ModelStatistics
from tiered.support.errors import TargetError, UsageError

TEXT = """(float[2,4] x) => (float[2,3] y) <float[4,3] w = {1,2,3,4,5,6,7,8,9,10,11,12}> {
    a = com.microsoft.Gelu(x)  b = Gelu(a)  c = Gelu(b)  y = MatMul(c, w) }"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Gelu", Expectation("Gelu", ">=", 1)),
        ("Gelu>=12", Expectation("Gelu", ">=", 12)),
        (" Gelu <= 3 ", Expectation("Gelu", "<=", 3)),
        ("com.microsoft::Gelu==0", Expectation("com.microsoft::Gelu", "==", 0)),
        ("ai.onnx::Gelu=2", Expectation("Gelu", "=", 2)),
        ("nodes>5", Expectation("nodes", ">", 5)),
        ("parameters<1000", Expectation("parameters", "<", 1000)),
        ("bytes<=90MB", Expectation("bytes", "<=", 90_000_000)),
        ("bytes<=1000", Expectation("bytes", "<=", 1000)),
    ],
)
def test_an_expectation_is_a_name_with_a_number(text: str, expected: Expectation) -> None:
    assert parse_expectations([text]) == (expected,)
    assert parse_expectations([str(expected)]) == (expected,)


def test_one_entry_may_have_several() -> None:
    assert [str(each) for each in parse_expectations(["Gelu, nodes<3", "Relu=0"])] == [
        "Gelu>=1", "nodes<3", "Relu=0",
    ]  # fmt: skip
    assert parse_expectations([]) == ()


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ("nodes<3", r"takes a list of texts, not 'nodes<3'; write \['nodes<3'\]"),
        (3, "takes a list of texts, as in .*, not 3"),
        (["3>nodes"], "--expect '3>nodes': expected Gelu>=12"),
        (["Gelu=>3"], "--expect 'Gelu=>3': expected Gelu>=12"),
        ([""], "--expect '': expected Gelu>=12"),
        (["nodes"], "'nodes': expected a number too, as in nodes<=500"),
        (["Gelu<1MB"], "'Gelu<1MB': '1MB' is no number"),
        (["bytes<1XB"], "--expect 'bytes<1XB': "),
    ],
)
def test_what_is_no_expectation_says_what_is_one(entries: object, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        parse_expectations(entries)  # type: ignore[arg-type]  # what a person may pass


@pytest.mark.parametrize(
    ("relation", "holds"),
    [
        (">=", (False, True, True)), ("<=", (True, True, False)), ("==", (False, True, False)),
        ("=", (False, True, False)), (">", (False, False, True)), ("<", (True, False, False)),
    ],
)  # fmt: skip
def test_a_relation_holds_for_the_number_that_is_found(
    relation: str, holds: tuple[bool, ...]
) -> None:
    expectation = Expectation("Gelu", relation, 5)
    assert tuple(expectation.holds(found) for found in (4, 5, 6)) == holds


def test_the_numbers_of_a_model() -> None:
    found = ModelStatistics.of(parsed(TEXT), file=1000)
    names = ("nodes", "parameters", "bytes", "Gelu", "com.microsoft::Gelu", "Relu")
    counts = [Expectation(name, ">=", 0).count_in(found) for name in names]
    assert counts == [4, 12, 1000, 2, 1, 0]


# --- names ----------------------------------------------------------------------------------------


def unjudged(*names: str, text: str = TEXT) -> frozenset[str]:
    expectations = [Expectation(name, ">=", 1) for name in names]
    pipeline = Sequential([get_pass("fuse_gelu")])
    return check_names(expectations, parsed(text), get_backend("int8_npu"), pipeline)


def test_names_of_domains_that_nobody_lists_are_judged_by_the_result() -> None:
    assert unjudged("nodes", "bytes", "parameters") == frozenset()
    assert unjudged("Gelu", "com.microsoft::Gelu") == frozenset()
    assert unjudged("acme::Gelu", "Relu") == {"acme::Gelu"}
    own = "(float[2] x) => (y) { y = acme.Own(x) }"
    assert unjudged("acme::Own", text=own) == frozenset()
    defined = """<ir_version: 10, opset_import: ["" : 21, "acme" : 1]> g (float[2] x) => (y) {
        y = Relu(x) } <domain: "acme", opset_import: ["" : 21]> Own (a) => (b) { b = Neg(a) }"""
    assert unjudged("acme::Own", text=defined) == frozenset()


@pytest.mark.parametrize(
    ("name", "hint"),
    [("Gelo", "'Gelo'; did you mean 'Gelu'"), ("com.microsoft.Gelu", "'com.microsoft::Gelu'")],
)
def test_an_operator_that_does_not_exist_has_a_suggestion(name: str, hint: str) -> None:
    with pytest.raises(UsageError, match=f"there is no operator .*{hint}"):
        unjudged(name)


# --- the result -----------------------------------------------------------------------------------


def failure(*entries: str, remarks: Sequence[Remark] = (), passes: Sequence[str] = ()) -> str:
    """Return why expectations of the model do not hold."""
    pipeline = Sequential([get_pass(name) for name in passes])
    with pytest.raises(TargetError) as error:
        check_expectations(
            parse_expectations(entries), ModelStatistics.of(parsed(TEXT)), pipeline, remarks
        )
    return str(error.value)


def test_an_expectation_that_does_not_hold_names_what_was_found() -> None:
    assert failure("nodes<4") == "expected nodes<4, found 4"
    assert failure("Relu") == "expected Relu>=1, found 0 (no pass of the pipeline makes it)"
    assert failure("Gelu>2", "nodes>=4", "parameters<12") == (
        "expected Gelu>2, found 2, and com.microsoft::Gelu 1 (no pass of the pipeline makes it); "
        "expected parameters<12, found 12"
    )


def _missed(*reasons: str, name: str = "fuse_gelu", kind: str = "missed") -> list[Remark]:
    return [Remark(kind, name, reason) for reason in reasons]  # type: ignore[arg-type]  # of the cases


def test_the_passes_that_make_an_operator_say_why_they_did_not() -> None:
    passes = ["fuse_gelu", "fuse_bn_into_conv"]
    assert failure("Gelu>2", passes=passes).endswith("(fuse_gelu found nothing to fuse)")
    others = [
        *_missed("of another", name="fuse_bn_into_conv"),
        *_missed("is said", kind="analysis"),
    ]
    assert "found nothing to fuse" in failure("Gelu>2", remarks=others, passes=passes)
    three = failure("Gelu>2", remarks=_missed("one", "two", "three"), passes=passes)
    assert [word in three for word in ("one", "two", "three", "...")] == [True, True, True, False]
    four = failure("Gelu>2", remarks=_missed("one", "two", "three", "four"), passes=passes)
    assert [word in four for word in ("three", "four", "...")] == [True, False, True]
    for kind in ("skipped", "failed"):
        assert "reason" in failure("Gelu>2", remarks=_missed("reason", kind=kind), passes=passes)


def test_what_holds_is_no_error_unless_nothing_has_the_name() -> None:
    found = ModelStatistics.of(parsed(TEXT))
    pipeline = Sequential([get_pass("fuse_gelu")])
    check_expectations(parse_expectations(["Gelu=2", "acme::Own=0"]), found, pipeline, ())
    none = parse_expectations(["acme::Own=0"])
    with pytest.raises(UsageError, match="there is no operator 'acme::Own'"):
        check_expectations(none, found, pipeline, (), {"acme::Own"})
    check_expectations(parse_expectations(["Gelu=2"]), found, pipeline, (), {"Gelu"})


def test_a_pass_makes_what_stands_right_of_its_law() -> None:
    pipeline = Sequential([get_pass("fuse_gelu"), get_pass("fuse_bn_into_conv")])
    assert makers_of("Gelu", pipeline) == ["fuse_gelu"]
    assert makers_of("Conv", pipeline) == ["fuse_bn_into_conv"]
    assert makers_of("Erf", pipeline) == []
