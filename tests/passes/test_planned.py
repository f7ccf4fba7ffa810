"""A pass at its place: which nodes it may rewrite, and what determines the outcome of a run."""

import pytest

from tests.small import drop_neg, fuse_relu, look, model, rename_graph
from tiered import Pass, function_pass
from tiered.passes.interface.pass_info import Decision, NodeRules, Place
from tiered.passes.planned import PlannedPass, Settings
from tiered.passes.policy.node_scope import Scope
from tiered.passes.run import Memory

RUNS = Decision(True, "it runs")
SETTINGS = Settings(2, "", ())


def planned(
    pass_: Pass = fuse_relu, decision: Decision = RUNS, settings: Settings = SETTINGS
) -> PlannedPass:
    return PlannedPass.of(pass_, Place(), decision, settings)


def test_a_pass_that_does_not_run_needs_nothing() -> None:
    pass_ = function_pass(opt_level=0, name="f", required=["infer_shapes"])(lambda g, c: None)
    plan = planned(pass_, Decision(False, "no"))
    assert (plan.required, plan.followers, plan.allows, plan.key) == ((), (), None, None)
    assert plan.decision.reason == "no"


def test_what_a_pass_requires_is_beside_it() -> None:
    pass_ = function_pass(
        opt_level=0, name="f", required=["infer_shapes"], followed_by=["eliminate_deadend"]
    )(lambda g, c: None)
    plan = planned(pass_)
    ((first, place),) = plan.required
    assert (first.name, place.needed_by, place.occurrence) == ("infer_shapes", "f", 0)
    assert [follower.name for follower, _ in plan.followers] == ["eliminate_deadend"]
    assert (planned().required, planned().followers) == ((), ())


def test_scope_and_rules_both_have_to_allow_a_node() -> None:
    nodes = model().main.topological_order()
    names = [node.name for node in nodes]
    rules = Decision(True, "", NodeRules(((Scope.of("node_b"), False),), True))
    assert planned().allows is None
    for pass_, decision, expected in (
        (fuse_relu.on("node_[ab]"), RUNS, ["node_a", "node_b"]),
        (fuse_relu, rules, [name for name in names if name != "node_b"]),
        (fuse_relu.on("node_[ab]"), rules, ["node_a"]),
    ):
        allows = planned(pass_, decision).allows
        assert allows is not None
        assert [node.name for node in nodes if allows(node)] == expected


def test_runs_of_the_same_pass_under_the_same_settings_have_one_outcome() -> None:
    key = planned().key
    assert key == planned().key
    assert key is not None
    rules = NodeRules(((Scope.of("node_b"), False),), True)
    others = [
        planned(drop_neg).key,
        planned(fuse_relu.on("a")).key,
        planned(decision=Decision(True, "", rules)).key,
        planned(settings=Settings(2, "target", ())).key,
    ]
    assert len({hash(each) for each in (key, *others)}) == 5
    assert planned(decision=Decision(True, "another reason")).key == key


def test_a_module_pass_always_runs() -> None:
    assert planned(rename_graph).key is None


@pytest.mark.parametrize(
    "settings", [Settings(3, "", ()), Settings(2, "", (("k", "v"),)), Settings(2, "t", ())]
)
def test_a_function_pass_sees_all_settings_and_a_rule_only_the_target(settings: Settings) -> None:
    assert planned(look, settings=settings).key != planned(look).key
    is_same = planned(settings=settings).key == planned().key
    assert is_same is not bool(settings.backend)


def test_a_result_has_the_reason_of_the_decision_unless_another_is_given() -> None:
    memory = Memory()
    plan = PlannedPass.of(fuse_relu, Place(needed_by="x"), RUNS, SETTINGS)
    result = plan.result(memory, changed=True, edits=3)
    assert (result.name, result.ran, result.reason) == ("fuse_relu", True, "it runs")
    assert (result.needed_by, result.model) == ("x", memory.serial)
    assert (result.changed, result.edits) == (True, 3)
    other = plan.result(memory, ran=False, reason="vetoed")
    assert (other.ran, other.reason, other.changed) == (False, "vetoed", False)


def test_an_idle_run_is_a_result_without_a_change() -> None:
    memory = Memory()
    plan = PlannedPass.of(fuse_relu, Place(needed_by="x"), RUNS, SETTINGS)
    assert plan.idle(memory, 0.25) == plan.result(memory, seconds=0.25)
