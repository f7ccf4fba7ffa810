"""A pass at its place, decided once: what it requires, which nodes it may edit, and its key."""

import pytest

from tests.small import fuse_relu, look, made_by, model, rename_graph
from tiered import Node, Pass, get_pass, op, rewrite, var
from tiered.passes.interface.pass_info import Decision, NodeRules, Place
from tiered.passes.pass_run import Memory
from tiered.passes.planned import ContextSettings, PlannedPass
from tiered.passes.policy.node_scope import Scope

RUNS = Decision(True, "asked")
SETTINGS = ContextSettings(1, "npu", (("debug", "1"),))
OTHER = ContextSettings(2, "npu", (("debug", "1"),))
TARGET = ContextSettings(1, "cpu", (("debug", "1"),))


CHECKED = rewrite(op.Relu(var.x), opt_level=1, name="checked", precondition=lambda graph: True)(
    lambda graph, x: x
)


def planned(
    pass_: Pass = fuse_relu, decision: Decision = RUNS, settings: ContextSettings = SETTINGS
) -> PlannedPass:
    return PlannedPass.of(pass_, Place(), decision, settings)


def test_a_pass_that_does_not_run_needs_nothing() -> None:
    found = planned(get_pass("fuse_consecutive_squeeze"), Decision(False, "disabled"))
    assert (found.required, found.followers, found.allows, found.key) == ((), (), None, None)
    assert found.decision.reason == "disabled"


def test_what_a_pass_requires_is_beside_it() -> None:
    pass_ = get_pass("fuse_blocks_into_matmul")
    place = Place(occurrence=3)
    found = PlannedPass.of(pass_, place, RUNS, SETTINGS)
    beside = place.beside(pass_.name)
    assert [(each.name, at) for each, at in found.required] == [("infer_shapes", beside)]
    assert [(each.name, at) for each, at in found.followers] == [
        ("eliminate_unused_initializer", beside)
    ]
    assert beside.occurrence == 0
    assert beside.needed_by == pass_.name
    assert (planned().required, planned().followers) == ((), ())


def test_only_passes_that_go_node_by_node_are_not_repeated_in_vain() -> None:
    assert planned(rename_graph).key is None
    assert planned().key is not None
    assert planned().key == planned().key
    assert planned(look).key != planned().key


@pytest.mark.parametrize(
    ("pass_", "sees_level"),
    [(fuse_relu, False), (look, True), (CHECKED, True)],
)
def test_the_target_decides_for_a_rule_and_all_settings_for_a_function(
    pass_: Pass, sees_level: bool
) -> None:
    assert (planned(pass_, settings=OTHER).key != planned(pass_).key) is sees_level
    assert planned(pass_, settings=TARGET).key != planned(pass_).key


def rules(*names: str) -> Decision:
    scopes = tuple((Scope.of(name), False) for name in names)
    return Decision(True, "asked", NodeRules(scopes, otherwise=True))


def allowed(found: PlannedPass) -> list[str]:
    nodes: list[Node] = [made_by(model(), name) for name in "abcy"]
    assert found.allows is not None
    return [node.name for node in nodes if found.allows(node)]


def test_scopes_of_the_pass_and_rules_of_the_context_both_count() -> None:
    assert planned().allows is None
    assert allowed(planned(fuse_relu.on("node_a"))) == ["node_a"]
    assert allowed(planned(decision=rules("node_a"))) == ["node_b", "node_c", "node_y"]
    assert allowed(planned(fuse_relu.on("node_?"), rules("node_a", "node_b"))) == [
        "node_c", "node_y",
    ]  # fmt: skip
    assert allowed(planned(fuse_relu.on("node_a"), rules("node_a"))) == []
    assert planned(decision=rules("node_a")).key != planned().key
    assert planned(fuse_relu.on("node_a")).key != planned().key


def test_a_result_has_the_place_and_the_reason() -> None:
    found, memory = planned()._replace(place=Place(needed_by="another")), Memory()
    result = found.result(memory, rewrites=3)
    assert (result.ran, result.reason, result.rewrites) == (True, "asked", 3)
    assert (result.needed_by, result.model) == ("another", memory.serial)
    assert found.result(memory, ran=False, reason="vetoed").reason == "vetoed"
    assert not found.result(memory, ran=False).ran
    idle = found.idle(memory, 0.5)
    assert idle == found.result(memory, changed=False, seconds=0.5)
