"""The names of onnx-passes: its kinds of passes, register, collect, verify."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

import tiered
from tests.small import content, fuse_relu, model, ops, registered
from tiered import Model
from tiered.compat import onnx_passes
from tiered.compat.onnx_passes import (
    Analysis,
    Annotation,
    ComposePass,
    RewriteRulePass,
    RewriteRuleSetPass,
    Transformation,
    collect,
    pass_of,
    register,
    verify,
)
from tiered.errors import PassError, PostconditionError, PreconditionError, UsageError


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    yield
    onnx_passes._GROUPS.clear()


class DropNeg(RewriteRulePass):
    def pattern(self, op: Any, x: Any) -> Any:
        return op.Abs(op.Neg(x))

    def rewrite(self, op: Any, x: Any) -> Any:
        return op.Abs(x)


class BreakAdds(RewriteRulePass):
    def pattern(self, op: Any, x: Any, y: Any) -> Any:
        return op.Add(x, y)

    def check(self, op: Any, x: Any, y: Any) -> bool:
        return x is not y

    def rewrite(self, op: Any, x: Any) -> Any:
        return op.Add(x, x)


def test_a_rule_is_a_pattern_a_check_and_a_rewrite() -> None:
    assert ops(DropNeg()(model())) == ["Relu", "Relu", "Abs"]
    text = "g (float[2] x, float[2] z) => (float[2] y) { a = Add(x, z)  y = Add(a, a) }"
    given = model(text)
    with tiered.PassContext() as ctx:
        pass_of(BreakAdds)(given)
    first = given.main.topological_order()[0]
    assert first.inputs == (given.main.inputs[0],) * 2
    assert "the check returned False" in str(ctx.remarks)


def test_what_a_kind_of_pass_is_made_of_must_be_there() -> None:
    class Half(RewriteRulePass):
        def rewrite(self, op: Any, x: Any) -> Any:
            return x

    class Whole(RewriteRuleSetPass):
        def pattern(self) -> Sequence[Any]:
            return [lambda op, x: op.Neg(x)]

    class Empty(Transformation):
        pass

    for kind, method in ((Half, "pattern(op, *variables)"), (Whole, "rewrite()")):
        lacking = re.escape(f"{kind.__name__} has no {method}")
        with pytest.raises(NotImplementedError, match=lacking):
            pass_of(kind)
    with pytest.raises(PassError, match=re.escape("Empty has no call(model)")):
        Empty()(model())


def test_a_set_of_rules_runs_each() -> None:
    class Both(RewriteRuleSetPass):
        def pattern(self) -> Sequence[Any]:
            return [lambda op, x: op.Relu(op.Relu(x)), lambda op, x: op.Neg(x)]

        def rewrite(self) -> Sequence[Any]:
            return [lambda op, x: op.Relu(x), lambda op, x: x]

    assert ops(Both()(model())) == ["Relu", "Abs"]
    assert [leaf.name for leaf in pass_of(Both).leaves()] == ["Both.1", "Both.2"]  # type: ignore[attr-defined]  # a pipeline


def test_conditions_are_checked_around_it() -> None:
    class Needs(Transformation):
        def requires(self, model: Model) -> None:
            if not model.main.nodes_of("Conv"):
                raise ValueError("no Conv")

        def call(self, model: Model) -> None:
            pytest.fail("it does not run")

    class Ensures(Transformation):
        def call(self, model: Model) -> None:
            model.main.rename_node(model.main.nodes[0], "other")

        def ensures(self, model: Model) -> bool:
            return False

    with pytest.raises(PreconditionError, match="Needs requires requires"):
        Needs()(model())
    given = model()
    before = content(given)
    with pytest.raises(PostconditionError):
        Ensures()(given)
    assert content(given) == before


def test_a_transformation_removes_what_it_leaves_dead() -> None:
    class Bypass(Transformation):
        def call(self, model: Model) -> object:
            graph = model.main
            graph.set_input(graph.nodes[3], 0, graph.nodes[0].output)
            return object()

    assert ops(Bypass()(model())) == ["Relu", "Abs"]


def test_annotations_and_analyses_are_held_to_what_they_are() -> None:
    class Renames(Annotation):
        def call(self, model: Model) -> None:
            model.main.rename_node(model.main.nodes[0], "other")

    class Breaks(Annotation):
        def call(self, model: Model) -> None:
            model.main.set_input(model.main.nodes[3], 0, model.main.nodes[0].output)

    class Edits(Analysis):
        def call(self, model: Model) -> None:
            model.main.rename_node(model.main.nodes[0], "other")

    assert Renames()(model()).main.nodes[0].name == "other"
    with pytest.raises(PassError, match="Breaks is an annotation"):
        Breaks()(model())
    with pytest.raises(PassError, match="Edits is an analysis"):
        Edits()(model())


def test_names_and_groups_are_collected() -> None:
    for group in ("cleanup", None):
        register(group)(DropNeg)
    register("cleanup")(BreakAdds)
    assert [pass_.name for pass_ in collect(["cleanup"])] == ["DropNeg", "BreakAdds"]
    assert [pass_.name for pass_ in collect(["DropNeg", DropNeg, fuse_relu])] == [
        "DropNeg",
        "DropNeg",
        "fuse_relu",
    ]
    assert [pass_.name for pass_ in collect(["eliminate_identity"])] == ["eliminate_identity"]
    with pytest.raises(UsageError, match="no pass named"):
        collect(["nothing"])


@pytest.mark.parametrize("exhaustive", [False, True])
def test_a_composition_runs_its_passes_once_or_until_nothing_changes(exhaustive: bool) -> None:
    class Whole(ComposePass):
        __passes__ = ("fuse_relu", DropNeg)
        __exhaustive__ = exhaustive

    with registered(fuse_relu):
        assert ops(Whole()(model())) == ["Relu", "Abs"]
        assert isinstance(pass_of(Whole), tiered.Fixpoint) is exhaustive


def test_verification_is_a_promise() -> None:
    promised = {"equality": "exact", "tolerance": "reassociating", "metric": "approximate"}
    for name, numerics in promised.items():
        decorated = getattr(verify, name)(type("Own", (DropNeg,), {}))
        assert pass_of(decorated).info.numerics == numerics
