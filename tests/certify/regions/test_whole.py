"""Two whole models as a problem: one interface, one opset of each domain, typed inputs."""

import pytest

from tests.small import parsed
from tiered import Model
from tiered.certify.evaluation.values import Unproved
from tiered.certify.regions.whole import whole_problem
from tiered.testing import parse

BEFORE = (
    "(float[2,N] x, float[2,N] z) => (float[2,N] y, float[2,N] w) { y = Add(x, z)  w = Neg(x) }"
)
AFTER = BEFORE.replace("Add(x, z)", "Add(z, x)")


def test_the_problem_is_whether_all_outputs_are_the_same() -> None:
    problem = whole_problem(parsed(BEFORE), parsed(AFTER))
    assert [*problem.outputs] == ["y", "w"]
    assert [*problem.borders] == ["x", "z"]
    sides = [[(n.op_type, [*n.input]) for n in side.nodes] for side in problem.sides]
    assert sides[0] == [("Add", ["x", "z"]), ("Neg", ["x"])]
    assert sides[1] == [("Add", ["z", "x"]), ("Neg", ["x"])]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("float[2,N] y, float[2,N] w)", "float[2,N] w, float[2,N] y)"),
        (", float[2,N] w)", ")"),
        ("float[2,N] x, float[2,N] z)", "float[2,N] z, float[2,N] x)"),
        ("float[2,N] z)", "float[2,N] z, float other)"),
    ],
)
def test_other_inputs_or_outputs_are_another_interface(old: str, new: str) -> None:
    assert old in BEFORE
    for models in ((BEFORE, BEFORE.replace(old, new)), (BEFORE.replace(old, new), BEFORE)):
        with pytest.raises(Unproved, match="the interfaces differ"):
            whole_problem(*map(parsed, models))


def test_a_domain_has_one_opset_in_both() -> None:
    models = [Model.from_proto(parse(BEFORE, opset=opset)) for opset in (20, 21)]
    with pytest.raises(Unproved, match="the opsets differ"):
        whole_problem(*models)
    own = parse(BEFORE)
    own.opset_import.add(domain="vendor", version=3)
    for sides in ((Model.from_proto(own), parsed(AFTER)), (parsed(AFTER), Model.from_proto(own))):
        assert whole_problem(*sides).opsets == {"": 21, "vendor": 3}


def test_an_input_has_a_known_type() -> None:
    proto = parse(BEFORE)
    proto.graph.input[1].ClearField("type")
    proto.graph.input[1].type.optional_type.elem_type.tensor_type.elem_type = 1
    with pytest.raises(Unproved, match="the type of input z is not known"):
        whole_problem(Model.from_proto(proto), Model.from_proto(proto))
