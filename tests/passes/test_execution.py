"""Execution: transactions, dependencies, counts of rewrites, and idle passes."""

from typing import Any

import pytest

import tiered
from tests.small import (
    FOUR,
    Recorder,
    all_negs_to_relus,
    content,
    failing,
    fuse_relu,
    look,
    model,
    neg_to_abs,
    negs_to_relus,
    ops,
    registered,
    rename_graph,
)
from tiered import (
    Graph,
    Model,
    Pass,
    PassContext,
    PassInfo,
    Sequential,
    Skip,
    Value,
    op,
    var,
)
from tiered.support.errors import (
    CycleError,
    ModelError,
    OperatorError,
    PassError,
    PreconditionError,
    UsageError,
)

# --- transactions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [ValueError("boom"), AssertionError(), KeyboardInterrupt()])
@pytest.mark.parametrize("edits", range(4))
def test_a_pass_that_dies_leaves_the_model_exactly_as_it_was(
    error: BaseException, edits: int
) -> None:
    given = model()
    before, nodes = content(given), given.main.nodes
    expected = PassError if isinstance(error, Exception) else KeyboardInterrupt
    with pytest.raises(expected):
        failing(error, edits=edits)(given)
    assert content(given) == before
    assert given.main.nodes == nodes
    assert ops(fuse_relu(given)) == ["Relu", "Neg", "Abs"]


def test_the_error_names_the_pass_the_rewrite_and_what_ran_before() -> None:
    cause = ValueError("boom")
    given = model()
    with pytest.raises(PassError) as caught:
        Sequential([fuse_relu, look, failing(cause)])(given)
    assert caught.value.__cause__ is cause
    assert str(caught.value) == (
        "failing failed at rewrite #2 of the model: ValueError: boom\n"
        "  changed before it by fuse_relu"
    )


def test_errors_that_are_meant_keep_their_type_and_name_the_pass() -> None:
    with pytest.raises(ModelError, match="broken") as caught:
        failing(ModelError("broken"))(model())
    assert caught.value.__notes__ == ["in pass failing"]


def test_a_pipeline_that_dies_leaves_the_model_as_it_was_before_the_pipeline() -> None:
    given = model()
    before = content(given)
    with pytest.raises(PassError):
        Sequential([fuse_relu, Sequential([rename_graph, failing(ValueError())])])(given)
    assert content(given) == before


def test_a_failure_is_said_once_however_deep_it_is() -> None:
    with PassContext() as ctx, pytest.raises(PassError):
        Sequential([Sequential([failing(ValueError("boom"))], name="inner")])(model())
    assert [remark.pass_name for remark in ctx.remarks if remark.kind == "failed"] == ["failing"]
    assert [result.name for result in ctx.report.results] == ["failing", "inner", "sequential"]


def test_on_error_skip_undoes_the_one_pass_and_goes_on() -> None:
    given = model()
    with PassContext(on_error="skip") as ctx:
        Sequential([fuse_relu, failing(ValueError("boom")), rename_graph])(given)
    assert ops(given) == ["Relu", "Neg", "Abs"]
    assert given.main.nodes[-1].name.endswith("!")
    (failed,) = ctx.report.of("failing")
    assert failed.error is not None
    assert not failed.changed
    assert [remark.reason for remark in ctx.remarks if remark.kind == "failed"] == [failed.error]


def test_a_keyboard_interrupt_is_not_skipped() -> None:
    with PassContext(on_error="skip"), pytest.raises(KeyboardInterrupt):
        failing(KeyboardInterrupt())(model())


# --- dependencies and follow-ups ------------------------------------------------------------------


def tracked(name: str, log: list[str], edit: bool = False, **declared: Any) -> Pass:
    """Return a pass that notes that it runs, and edits if it is told to."""

    def run(model: Model, ctx: PassContext) -> None:
        log.append(name)
        if edit:
            node = model.main.nodes[0]
            model.main.rename_node(node, node.name + "'")

    return tiered.module_pass(opt_level=declared.pop("opt_level", 0), name=name, **declared)(run)


def test_dependencies_run_first_and_those_of_those_before() -> None:
    log: list[str] = []
    needs = tracked("needs", log, required=["middle"])
    middle, last = tracked("middle", log, required=["last"]), tracked("last", log)
    with registered(middle, last):
        needs(model())
    assert log == ["last", "middle", "needs"]


def test_a_dependency_runs_again_only_after_an_edit() -> None:
    log: list[str] = []
    given = model()
    needed, needs = tracked("needed", log), tracked("needs", log, required=["needed"])
    editor = tracked("editor", log, edit=True)
    with registered(needed):
        Sequential([needs, needs, editor, needs])(given)
        needs(given)
        needs(model())
    assert log == [
        "needed",
        "needs",
        "needs",
        "editor",
        "needed",
        "needs",
        "needs",
        "needed",
        "needs",
    ]


def test_a_dependency_is_stale_again_when_edits_were_undone() -> None:
    log: list[str] = []
    given = model()
    needed, needs = tracked("needed", log), tracked("needs", log, required=["needed"])
    with registered(needed):
        mark = given.mark()
        tracked("editor", log, edit=True)(given)
        needs(given)
        given.undo_to(mark)
        needs(given)
    assert log == ["editor", "needed", "needs", "needed", "needs"]


def test_a_disabled_dependency_disables_its_dependant_and_says_why() -> None:
    log: list[str] = []
    needed, needs = tracked("needed", log), tracked("needs", log, required=["needed"])
    with registered(needed), PassContext(disabled=["needed"]) as ctx:
        needs(model())
        assert ctx.decide(needs).reason.startswith("needs needed, which is disabled by 'needed'")
    assert log == []
    refused = pytest.raises(UsageError, match="needs needs needed, which is disabled")
    with registered(needed), PassContext(disabled=["needed"], strict=True), refused:
        needs(model())


def test_a_dependency_that_fails_or_is_vetoed_disables_its_dependant() -> None:
    class Veto:
        def should_run(self, model: Model, info: PassInfo) -> bool:
            return info.name != "look"

    log: list[str] = []
    needs = tracked("needs", log, required=["failing"])
    with registered(failing(ValueError())), PassContext(on_error="skip") as ctx:
        needs(model())
    assert ctx.report.results[-1].reason == "needs failing, which did not run to its end"
    with registered(look), PassContext(instruments=[Veto()]) as ctx:
        tracked("needs", log, required=["look"])(model())
    assert ctx.report.results[-1].reason == "needs look, which did not run to its end"
    assert log == []


def test_a_dependency_runs_whatever_its_level() -> None:
    log: list[str] = []
    needed = tracked("needed", log, opt_level=4)
    with registered(needed), PassContext(opt_level=0):
        tracked("needs", log, required=["needed"])(model())
    assert log == ["needed", "needs"]


def test_a_follow_up_runs_when_something_changed() -> None:
    log: list[str] = []
    after = tracked("after", log)
    with registered(after):
        tracked("idle", log, followed_by=["after"])(model())
        assert log == ["idle"]
        tracked("busy", log, edit=True, followed_by=["after"])(model())
    assert log == ["idle", "busy", "after"]


def test_follow_ups_that_follow_each_other_come_to_an_end() -> None:
    log: list[str] = []
    ping = tracked("ping", log, edit=True, followed_by=["pong"])
    pong = tracked("pong", log, edit=True, followed_by=["ping"])
    with registered(ping, pong):
        ping(model())
    assert log == ["ping", "pong"]


# --- rewrites are counted -------------------------------------------------------------------------


@pytest.mark.parametrize("limit", range(6))
@pytest.mark.parametrize("pass_", [neg_to_abs, negs_to_relus])
def test_the_limit_lets_the_first_rewrites_through(pass_: Pass, limit: int) -> None:
    given = model(FOUR)
    with PassContext(rewrite_limit=limit) as ctx:
        pass_(given)
    assert ops(given).count("Neg") == max(4 - limit, 0)
    assert ctx.report.results[0].rewrites == min(limit, 4)
    pass_(given)
    assert "Neg" not in ops(given)


@pytest.mark.parametrize(("limit", "left"), [(0, 4), (1, 0), (2, 0)])
def test_a_pass_that_numbers_nothing_is_one_rewrite(limit: int, left: int) -> None:
    given = model(FOUR)
    with PassContext(rewrite_limit=limit):
        all_negs_to_relus(given)
    assert ops(given).count("Neg") == left


def test_results_count_rewrites_edits_and_time() -> None:
    with PassContext() as ctx:
        Sequential([fuse_relu, look])(model())
    fused, looked, whole = ctx.report.results
    assert (fused.name, fused.changed, fused.rewrites) == ("fuse_relu", True, 1)
    assert (looked.changed, looked.rewrites, looked.edits) == (False, 0, 0)
    assert (whole.info.kind, whole.rewrites, whole.edits) == ("pipeline", 1, fused.edits)
    assert whole.seconds >= fused.seconds + looked.seconds > 0
    assert [info.name for info in ctx.report.changing()] == ["fuse_relu"]


# --- looking twice --------------------------------------------------------------------------------


def counting(log: list[str]) -> Pass:
    def count(graph: Graph, ctx: PassContext) -> None:
        log.append(graph.name)

    return tiered.function_pass(opt_level=0, name="counting")(count)


def test_a_pass_does_not_look_again_at_a_model_that_did_not_move() -> None:
    log: list[str] = []
    given, pass_ = model(), counting(log)
    pass_(pass_(given))
    assert log == ["g"]
    fuse_relu(given)
    pass_(given)
    assert log == ["g", "g"]
    pass_(model())
    assert len(log) == 3


@pytest.mark.parametrize(
    "settings",
    [{"opt_level": 4}, {"config": {"remarks.examples": 1}}, {"backend": "onnxruntime_cpu"}],
)
def test_a_pass_looks_again_where_the_context_is_another(settings: Any) -> None:
    log: list[str] = []
    given, pass_ = model(), counting(log)
    pass_(given)
    with PassContext(**settings):
        pass_(given)
    assert log == ["g", "g"]


def test_a_rule_looks_only_at_what_moved() -> None:
    given, seen = model(FOUR), list[str]()

    @tiered.rewrite(op.Neg(var.x), opt_level=0)
    def see(graph: Graph, x: Value) -> Skip:
        seen.append(x.name)
        return Skip("only looking")

    see(given)
    assert seen == ["x", "a", "b", "c"]
    last = given.main.nodes[-1]
    given.main.set_input(last, 0, given.main.nodes[1].outputs[0])
    see(given)
    assert "x" not in seen[4:]


def test_a_limit_that_held_rewrites_back_is_not_the_end() -> None:
    given = model(FOUR)
    with PassContext(rewrite_limit=0):
        neg_to_abs(given)
    assert ops(neg_to_abs(given)).count("Abs") == 4


def test_a_choice_that_held_rewrites_back_is_not_the_end() -> None:
    @tiered.function_pass(opt_level=0)
    def to_abs(graph: Graph, ctx: PassContext) -> None:
        for node in graph.nodes_of("Neg"):
            with graph.rewrite("Neg(x) => Abs(x)", node):
                graph.replace(node, [graph.op.Abs(*node.inputs)])

    given = model(FOUR)
    given.gate.chosen = lambda key: False
    assert ops(to_abs(given)).count("Abs") == 0
    given.gate.chosen = None
    assert ops(to_abs(given)).count("Abs") == 4


def test_a_pass_that_does_not_run_needs_nothing() -> None:
    needing = tiered.function_pass(opt_level=3, required=["fuse_relu"], name="needing")
    for instruments in ([], [Recorder()]):
        with registered(fuse_relu), PassContext(2, instruments=instruments) as ctx:
            needing(lambda graph, ctx: None)(model())
        assert [result.name for result in ctx.report.results] == ["needing"]


def test_a_pipeline_knows_what_the_dependencies_of_an_idle_pass_changed() -> None:
    idle = tiered.rewrite(op.Exp(var.x), opt_level=0, required=["fuse_relu"], name="idle")
    with registered(fuse_relu), PassContext() as ctx:
        tiered.Fixpoint([idle(lambda graph, x: x)])(model())
    assert [result.name for result in ctx.report.results].count("idle") == 2


def test_a_checked_view_is_checked_after_idle_passes_too(monkeypatch: pytest.MonkeyPatch) -> None:
    idle = tiered.rewrite(op.Exp(var.x), opt_level=0, name="idle")(lambda graph, x: x)
    checked: list[bool] = []
    monkeypatch.setattr(Model, "check_view", lambda self, *, types=False: checked.append(types))
    for checks, expected in ((False, []), (True, [True])):
        checked.clear()
        with PassContext(config={"debug.check_view": checks}):
            idle(model())
        assert checked == expected


def test_the_origins_of_nodes_are_written_where_that_is_asked_for() -> None:
    for asked in (False, True):
        with PassContext(config={"provenance.metadata": asked}):
            made = fuse_relu(model())
        assert any(node.metadata for node in made.main.nodes) is asked


def test_an_analysis_writes_no_origins() -> None:
    given = fuse_relu(model())
    before = content(given)
    with PassContext(config={"provenance.metadata": True}):
        tiered.module_pass(opt_level=0, analysis=True, name="looks")(lambda model, ctx: None)(given)
        assert content(given) == before
        look(given)
    assert content(given) != before


def test_an_analysis_that_edits_is_undone() -> None:
    @tiered.function_pass(opt_level=0, analysis=True)
    def edits(graph: Graph, ctx: PassContext) -> None:
        graph.op.Exp(graph.inputs[0])

    given = model()
    before = content(given)
    with pytest.raises(PassError, match=r"^edits is an analysis, but it edited the model"):
        edits(given)
    assert content(given) == before


def test_an_error_of_an_operator_names_the_pass_or_the_model() -> None:
    @tiered.function_pass(opt_level=0)
    def fails(graph: Graph, ctx: PassContext) -> None:
        raise OperatorError("no such form")

    with pytest.raises(OperatorError, match="no such form") as caught:
        fails(model())
    assert caught.value.__notes__ == ["in pass fails"]
    assert caught.value.__cause__ is None
    given = model()
    given.main.nodes[0].proto.attribute.add(name="odd", i=1, type=2)
    invalid = Model.from_proto(given.to_proto())
    with pytest.raises(PreconditionError, match="is not a valid model, and fails cannot"):
        fails(invalid)


def test_a_cycle_is_the_fault_of_the_pass_that_made_one() -> None:
    @tiered.function_pass(opt_level=0)
    def fails(graph: Graph, ctx: PassContext, *, edits: bool = False) -> None:
        if edits:
            graph.op.Exp(graph.inputs[0])
        raise CycleError("a, b")

    with pytest.raises(CycleError, match="a, b") as caught:
        fails(model())
    assert caught.value.__notes__ == ["in pass fails"]
    with pytest.raises(PassError, match=r"^fails\{edits=true\} failed on .*: a, b$"):
        fails.with_options(edits=True)(model())


def test_a_failing_check_says_what_changed_before_it(caplog: pytest.LogCaptureFixture) -> None:
    def two_relus(of: Model) -> bool:
        return len(of.main.nodes_of("Relu")) == 2

    def no_relus(of: Model) -> bool:
        return not of.main.nodes_of("Relu")

    Sequential([look], checks=[two_relus])(model())
    for check, when, note in (
        (no_relus, "before sequential", "changed before it by no pass"),
        (two_relus, "after sequential", "changed before it by fuse_relu"),
    ):
        with pytest.raises(PassError, match=f"check {check.__name__} failed {when} of") as caught:
            Sequential([fuse_relu], checks=[check])(model())
        assert note in caught.value.__notes__
    pipeline = Sequential([look, fuse_relu], checks=[two_relus], suppress_check_failures=True)
    with PassContext() as ctx:
        pipeline(model())
    said = [remark.reason for remark in ctx.remarks if remark.kind == "check"]
    assert said
    assert said[0].startswith("check two_relus failed after sequential of")
    assert said[0] in [record.getMessage() for record in caplog.records]


def test_only_who_has_no_context_is_told_that_a_pass_did_not_run(
    caplog: pytest.LogCaptureFixture,
) -> None:
    high = tiered.function_pass(opt_level=4, name="high")(lambda graph, ctx: None)
    with PassContext():
        high(model())
    assert caplog.records == []
    high(model())
    look(model())
    assert [record.getMessage() for record in caplog.records] == [
        "high did not run: needs opt_level 4; it is 2, the default (`.apply` runs it anyway)"
    ]


def test_an_instrument_is_not_asked_about_what_does_not_run() -> None:
    asked: list[str] = []

    class Asked:
        def should_run(self, model: Model, info: PassInfo) -> bool:
            asked.append(info.name)
            return True

    high = tiered.function_pass(opt_level=4, name="high")(lambda graph, ctx: None)
    with PassContext(instruments=[Asked()]):
        Sequential([high, look], name="two")(model())
    assert asked == ["two", "look"]
