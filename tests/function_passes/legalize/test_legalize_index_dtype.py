import pytest

from tiered import Model, PassContext, get_pass
from tiered.targets.known import table_of
from tiered.targets.reading import backend_of
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "legalize_index_dtype"


@pytest.mark.parametrize("op", ["Gather<axis=1>", "GatherElements<axis=1>"])
def test_computed_indices_are_converted(op: str) -> None:
    head = (
        "(float[2,3] x, bool[2,1] c) => (float[?,?,?] y)"
        if op[6] == "<"
        else ("(float[2,3] x, bool[2,1] c) => (float[2,1] y)")
    )
    assert_rewrites(
        PASS,
        f"{head} {{ i = Cast<to=7>(c) y = {op}(x, i) }}",
        f"{head} {{ i = Cast<to=7>(c) j = Cast<to=6>(i) y = {op}(x, j) }}",
    )


def test_constant_indices_become_int32() -> None:
    head = "(float[N,3] x) => (float[N,2] y)"
    assert_rewrites(
        PASS,
        f"{head} <int64[2] i = {{-1, 0}}> {{ y = Gather<axis=1>(x, i) }}",
        f"{head} <int32[2] i = {{-1, 0}}> {{ y = Gather<axis=1>(x, i) }}",
    )


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (
            "(float[4] x) => (float[1] y) <int32[1] i = {1}> { y = Gather(x, i) }",
            "the indices are not int64",
        ),
        (
            "(float[N] x) => (float[1] y) <int64[1] i = {4294967296}> { y = Gather(x, i) }",
            "an index is out of range",
        ),
        (
            "(float[3000000000] x, int64[1] i) => (float[1] y) { y = Gather(x, i) }",
            "the axis has more than 2**31 elements",
        ),
    ],
)
def test_it_stays(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because)


def test_a_target_with_indices_of_32_bits_gets_them() -> None:
    operators = {"Gather": {"types": {"Tind": ["int32"]}}, "Cast": True}
    table = {"api_version": 1, "name": "t", "operators": operators}
    text = "(float[4,3] x, int64[2] i) => (float[2,3] y) { y = Gather(x, i) }"
    model = Model.from_proto(parse(text))
    get_pass("legalize").apply(
        model, PassContext.isolated(backend=backend_of(table, "t", table_of))
    )
    assert [node.op_type for node in model.main.nodes] == ["Cast", "Gather"]
