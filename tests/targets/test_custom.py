"""Definitions of custom operators: a body, a function of Python, or a library."""

import math
from typing import Any

import onnx
import pytest

from tiered.support.errors import BackendError
from tiered.targets.custom import CustomOperator

BODY = "Twice (x) => (y) { y = Add(x, x) }"
IMPORTS = [onnx.helper.make_opsetid("", 21)]


def test_a_name_has_a_domain() -> None:
    made = CustomOperator.of(" a.b::Twice ", body=BODY)
    assert (made.domain, made.op_type, made.key, str(made)) == (
        "a.b", "Twice", ("a.b", "Twice"), "a.b::Twice",
    )  # fmt: skip
    for name in ("Twice", "::Twice", "a::"):
        with pytest.raises(BackendError, match="expected a domain and a name"):
            CustomOperator.of(name, body=BODY)


@pytest.mark.parametrize(
    ("definition", "count"),
    [
        ({}, 0),
        ({"body": BODY, "library": "lib.so"}, 2),
        ({"reference": math.sqrt, "library": "lib.so"}, 2),
        ({"body": BODY, "reference": "math:sqrt", "library": "lib.so"}, 3),
    ],
)
def test_there_is_one_definition(definition: dict[str, Any], count: int) -> None:
    with pytest.raises(BackendError, match=f"expected one of a body .*, found {count} of them"):
        CustomOperator.of("a::Twice", **definition)


def test_a_body_has_the_opsets_of_the_model_or_its_own() -> None:
    made = CustomOperator.of("a::Twice", body=f"  {BODY}").function(IMPORTS)
    assert (made.domain, made.name, list(made.opset_import)) == ("a", "Twice", IMPORTS)
    own = f'<domain: "a", opset_import: ["" : 18]> {BODY}'
    found = CustomOperator.of("a::Twice", body=own).function(IMPORTS)
    assert [each.version for each in found.opset_import] == [18]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (BODY.replace("Twice", "Thrice"), "a function of that name, not a::Thrice"),
        (f'<domain: "b", opset_import: ["" : 18]> {BODY}', "that name, not b::Twice"),
        ("Twice (x) =>", "the body of a::Twice: "),
    ],
)
def test_a_body_is_a_function_of_its_name(body: str, reason: str) -> None:
    with pytest.raises(BackendError, match=reason):
        CustomOperator.of("a::Twice", body=body).function(IMPORTS)


def test_a_reference_is_a_function_or_its_place() -> None:
    assert CustomOperator.of("a::Root", reference=math.sqrt).callable() is math.sqrt
    assert CustomOperator.of("a::Root", reference="math:sqrt").callable() is math.sqrt
    for place in ("math:no_such", "no_such_module:f", "math", ":f"):
        with pytest.raises(BackendError, match="the reference of a::Root: cannot import"):
            CustomOperator.of("a::Root", reference=place).callable()
