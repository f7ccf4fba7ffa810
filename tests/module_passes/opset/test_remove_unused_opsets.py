import pytest

from tests.rollback import assert_undone
from tiered import optimize
from tiered.testing import assert_unchanged, parse

PASS = "remove_unused_opsets"
HEADER = '<ir_version: 10, opset_import: ["" : 21, "a" : 1, "b" : 2, "c" : 3]> '


def imports(proto: object) -> dict[str, int]:
    return {entry.domain: entry.version for entry in proto.opset_import}  # type: ignore[attr-defined]  # a model or a function


def test_a_domain_that_nothing_uses_goes() -> None:
    made = assert_undone(PASS, HEADER + "g (float[2] x) => (float[2] y) { y = b.Op(x) }")
    assert imports(made) == {"": 21, "b": 2}


def test_the_default_domain_stays() -> None:
    made = assert_undone(PASS, HEADER + "g (float[2] x) => (float[2] y) { y = a.Op(x) }")
    assert imports(made) == {"": 21, "a": 1}


def test_a_domain_that_a_body_uses_stays() -> None:
    made = assert_undone(
        PASS,
        HEADER
        + "g (float[2] x, bool p) => (float[2] y) { y = If(p) <then_branch = t () => (float[2] k) { k = c.Op(x) }, else_branch = e () => (float[2] n) { n = Neg(x) }> }",
    )
    assert imports(made) == {"": 21, "c": 3}


def test_functions_have_imports_of_their_own_and_the_model_keeps_theirs() -> None:
    made = assert_undone(
        PASS,
        HEADER
        + 'g (float[2] x) => (float[2] y) { y = a.f(x) } <domain: "a", opset_import: ["" : 21, "b" : 2, "c" : 3]> f (v) => (u) { u = b.Op(v) }',
    )
    assert imports(made) == {"": 21, "a": 1, "b": 2}
    assert imports(made.functions[0]) == {"": 21, "b": 2}


def test_a_domain_that_metadata_speak_of_stays() -> None:
    proto = parse(HEADER + "g (float[2] x) => (float[2] y) { y = a.Op(x) }")
    proto.metadata_props.add(key="quantized by", value="b 2.0")
    assert imports(assert_undone(PASS, proto)) == {"": 21, "a": 1, "b": 2}


def test_a_domain_that_training_uses_stays() -> None:
    proto = parse(HEADER + "g (float[2] x) => (float[2] y) { y = a.Op(x) }")
    proto.training_info.add().algorithm.node.add(op_type="Step", domain="b")
    assert imports(assert_undone(PASS, proto)) == {"": 21, "a": 1, "b": 2}


def test_imports_that_are_used_are_left_alone() -> None:
    assert_unchanged(
        PASS,
        '<ir_version: 10, opset_import: ["" : 21, "a" : 1]> g (float[2] x) => (float[2] y) { y = a.Op(x) }',
    )


@pytest.mark.parametrize(
    ("level", "left"),
    [(0, {"": 21, "a": 1, "b": 2, "c": 3}), *((n, {"": 21, "b": 2}) for n in range(1, 5))],
)
def test_level_0_keeps_all_imports_and_every_level_the_versions(
    level: int, left: dict[str, int]
) -> None:
    unused = ' <domain: "a", opset_import: ["" : 21]> f (v) => (u) { u = Neg(v) }'
    proto = parse(HEADER + "g (float[2] x) => (float[2] y) { y = b.Op(x) }" + unused)
    assert imports(optimize(proto, opt_level=level)) == left
