"""Remarks: equal ones are counted together."""

import tiered
from tests.small import fuse_relu, keep_abs, look, model
from tiered import (
    Graph,
    PassContext,
    Sequential,
    Skip,
    Value,
    op,
    var,
)
from tiered.passes.interface.pass_info import PassInfo, PassResult
from tiered.passes.interface.report import Remark, Report


def test_like_remarks_are_counted_together_with_examples() -> None:
    three = "g (float[2] x) => (float[2] y) { a = Abs(x)  b = Abs(a)  y = Abs(b) }"
    with PassContext(config={"remarks.examples": 2}) as ctx:
        keep_abs(model(three))
    (remark,) = ctx.remarks
    assert (remark.kind, remark.count, remark.op_type) == ("missed", 3, "Abs")
    assert str(remark) == "keep_abs: 3 Abs unchanged: it is Abs after all (node_a, node_b, ...)"


def test_a_node_that_was_rewritten_after_all_was_not_missed() -> None:
    def fuse_unless(graph: Graph, x: Value) -> Value | Skip:
        if graph.name == "later":
            return Skip("not yet")
        return x

    pass_ = tiered.rewrite(op.Neg(var.x), opt_level=0, name="fuse_unless")(fuse_unless)
    given = model()
    with PassContext() as ctx:
        given.main.skeleton.name = "later"
        pass_(given)
        assert [remark.kind for remark in ctx.remarks] == ["missed"]
        given.main.skeleton.name = "now"
        given.main.set_attribute(given.main.nodes_of("Neg")[0], "axis", 1)
        given.main.set_attribute(given.main.nodes_of("Neg")[0], "axis", None)
        pass_(given)
    assert [remark.kind for remark in ctx.remarks] == ["applied"]


def test_a_function_pass_says_what_it_leaves_and_what_it_finds() -> None:
    @tiered.function_pass(opt_level=0)
    def talk(graph: Graph, ctx: PassContext) -> None:
        for node in graph.nodes_of("Relu"):
            ctx.skip(node, Skip("it is a {}", "Relu"))
        ctx.remark("seen it all")

    with PassContext() as ctx:
        talk(model())
    assert [str(remark) for remark in ctx.remarks] == [
        "talk: 2 Relu unchanged: it is a Relu (node_a, node_b)",
        "talk: seen it all",
    ]


def test_nobody_needs_to_listen_to_a_pass_that_talks() -> None:
    PassContext().skip(None, Skip("outside"))
    PassContext().remark("outside")


def test_the_results_of_a_pass_are_those_of_its_name() -> None:
    ctx = PassContext.isolated()
    with ctx:
        Sequential([look, fuse_relu, look])(model())
    assert [result.name for result in ctx.report.of("look")] == ["look", "look"]
    assert ctx.report.of("nothing") == []
    assert [result.name for result in ctx.report.ran()] == ["look", "fuse_relu", "look"]


def test_a_remark_in_words() -> None:
    for remark, expected in (
        (Remark("applied", "p", "a => b", 1), "p: 1 rewrite: a => b"),
        (Remark("applied", "p", "", 2), "p: 2 rewrites"),
        (Remark("missed", "p", "no", 2, "Neg", ("a",)), "p: 2 Neg unchanged: no (a, ...)"),
        (Remark("missed", "p", "no", 1), "p: unchanged: no"),
        (Remark("failed", "p", "no", 1), "p: no"),
        (Remark("failed", "p", "no", 2), "p: no (2 times)"),
        (Remark("hook", "", "no", 1, "", ("a",)), "no (a)"),
    ):
        assert str(remark) == expected


def test_a_pipeline_that_passes_an_error_on_has_not_failed_itself() -> None:
    report = Report()

    def result(name: str, kind: str, error: str | None) -> PassResult:
        return PassResult(PassInfo(name, kind=kind), name, True, "", error=error)

    report.results = [
        result("p", "module", "boom"), result("q", "module", None), result("s", "pipeline", "boom"),
        result("t", "pipeline", "its own"),
    ]  # fmt: skip
    assert [each.name for each in report.failed()] == ["p", "t"]
    assert [str(each) for each in report.remarks(3)] == ["p: boom", "t: its own"]


def test_a_deprecated_pass_is_remarked_where_it_was_asked_for() -> None:
    report = Report()
    info = PassInfo("old", life="deprecated", replacement="new")
    asked = PassResult(info, "old", True, "")
    for results, expected in (
        ([asked], ["old: deprecated: use new"]),
        ([asked._replace(needed_by="other")], []),
        ([asked._replace(info=PassInfo("old"))], []),
        ([asked._replace(ran=False, reason="no")], ["old: no"]),
    ):
        report.results = results
        assert [str(each) for each in report.remarks(3)] == expected
