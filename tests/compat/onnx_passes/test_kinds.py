"""The kinds of passes: classes with `call`, or with a pattern and a rewrite."""

import re
from collections.abc import Sequence
from typing import Any

import pytest

import tiered
from tests.compat.onnx_passes.small_classes import DropNeg
from tests.recorded import assert_values
from tests.small import content, fuse_relu, model, ops, registered
from tiered import Model
from tiered.compat.onnx_passes import (
    Analysis,
    Annotation,
    ComposePass,
    RewriteRulePass,
    RewriteRuleSetPass,
    Transformation,
    kinds,
    pass_of,
    register,
    verify,
)
from tiered.compat.onnx_passes.kinds import PassKind
from tiered.support.errors import (
    PassError,
    PostconditionError,
    PreconditionError,
    UsageError,
    VerificationError,
)
from tiered.support.numerics import Numerics
from tiered.verify import Verify


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

    with pytest.raises(PreconditionError, match=r"Needs\.requires of"):
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


@pytest.mark.parametrize("exhaustive", [False, True])
def test_a_composition_runs_its_passes_once_or_until_nothing_changes(exhaustive: bool) -> None:
    class Whole(ComposePass):
        __passes__ = ("fuse_relu", DropNeg)
        __exhaustive__ = exhaustive

    with registered(fuse_relu):
        assert ops(Whole()(model())) == ["Relu", "Abs"]
        assert isinstance(pass_of(Whole), tiered.Fixpoint) is exhaustive


ADD = "g (float[2] x, float[2] z) => (float[2] y) { a = Add(x, z)  y = Neg(a) }"


def mixed(first: type, second: type) -> type:
    """Return the demonstration of onnx-passes: Add(x, y) => Add(x, x), which is wrong."""

    @verify.equality
    @register()
    class BreakAdds(first, second):  # type: ignore[misc]  # the bases are arguments
        def pattern(self, op: Any, x: Any, y: Any) -> Any:
            return op.Add(x, y)

        def check(self, op: Any, x: Any, y: Any) -> bool:
            return x is not y

        def rewrite(self, op: Any, x: Any, y: Any) -> Any:
            return op.Add(x, x)

    return BreakAdds


@pytest.mark.parametrize(
    "bases", [(Transformation, RewriteRulePass), (RewriteRulePass, Transformation)]
)
def test_a_rule_may_be_a_transformation_too(bases: tuple[type, type]) -> None:
    broken = mixed(*bases)
    made = broken()(model(ADD))
    assert made.main.nodes_of("Add")[0].inputs == (made.main.inputs[0],) * 2
    before = model(ADD)
    with (
        pytest.raises(VerificationError, match="BreakAdds changed output"),
        tiered.PassContext(instruments=[Verify()]),
    ):
        tiered.Sequential(["BreakAdds"])(before)
    assert content(before) == content(model(ADD))


@pytest.mark.parametrize("first", [True, False])
def test_a_set_and_a_composition_may_be_transformations_too(first: bool) -> None:
    def bases(kind: type) -> tuple[type, ...]:
        return (Transformation, kind) if first else (kind, Transformation)

    class Rules(*bases(RewriteRuleSetPass)):  # type: ignore[misc]  # the bases are computed
        def pattern(self) -> Sequence[Any]:
            return [lambda op, x: op.Relu(op.Relu(x)), lambda op, x: op.Neg(x)]

        def rewrite(self) -> Sequence[Any]:
            return [lambda op, x: op.Relu(x), lambda op, x: x]

    class All(*bases(ComposePass)):  # type: ignore[misc]  # as above
        __passes__ = (Rules, "eliminate_identity")

    assert ops(Rules()(model())) == ops(All()(model())) == ["Relu", "Abs"]


def test_a_kind_of_its_own_says_what_is_expected() -> None:
    class Bare(PassKind):
        """No kind of pass."""

    message = "Bare: expected a subclass of Transformation, RewriteRulePass or ComposePass"
    with pytest.raises(UsageError, match=message):
        Bare().as_pass()


@pytest.mark.parametrize(
    ("checks", "rewrites", "counts"),
    [
        ([None], 2, "2 patterns, 1 check and 2 rewrites"),
        ([], 1, "2 patterns, 2 checks and 1 rewrite"),
        ([None] * 3, 3, "2 patterns, 3 checks and 3 rewrites"),
    ],
)
def test_a_set_has_as_many_parts_of_each_kind(
    checks: list[Any], rewrites: int, counts: str
) -> None:
    class Uneven(RewriteRuleSetPass):
        def pattern(self) -> Sequence[Any]:
            return [lambda op, x: op.Neg(x), lambda op, x: op.Relu(x)]

        def check(self) -> Sequence[Any]:
            return checks

        def rewrite(self) -> Sequence[Any]:
            return [lambda op, x: x] * rewrites

    with pytest.raises(UsageError, match=f"^Uneven has {counts}$"):
        Uneven().as_pass()


def test_each_rule_of_a_set_has_its_check_or_none() -> None:
    class Checked(RewriteRuleSetPass):
        def pattern(self) -> Sequence[Any]:
            return [lambda op, x: op.Neg(x), lambda op, x: op.Abs(x)]

        def check(self) -> Sequence[Any]:
            return [lambda op, x: False, None]

        def rewrite(self) -> Sequence[Any]:
            return [lambda op, x: x, lambda op, x: op.Exp(x)]

    assert ops(Checked()(model())) == ["Relu", "Relu", "Neg", "Exp"]


def test_the_most_specific_kind_decides_whatever_the_order_of_the_bases() -> None:
    class Noted(Analysis, Annotation):
        def call(self, model: Model) -> None:
            model.main.rename_node(model.main.nodes[0], "other")

    class Turned(Annotation, Analysis):
        call = Noted.call

    for kind in (Noted, Turned):
        with pytest.raises(PassError, match="is an analysis"):
            kind()(model())


def test_a_pass_is_declared_by_its_class() -> None:
    class Own(Transformation):
        """Do nothing."""

        numerics = Numerics.LOSSY

        def call(self, model: Model) -> None:
            """Change nothing."""

    made = pass_of(Own)
    assert (made.name, made.info.opt_level, made.info.numerics) == ("Own", None, "lossy")
    assert made.info.followed_by == ("eliminate_deadend",)
    assert PassKind.numerics is Numerics.EXACT
    assert Own()(model()).main.nodes


def test_an_annotation_may_not_change_operands_types_or_numbers_of_nodes() -> None:
    def annotation(edit: Any) -> Any:
        return type("Edits", (Annotation,), {"call": lambda self, model: edit(model.main)})()

    edits: list[Any] = [
        lambda graph: graph.set_operator(graph.nodes[2], "Exp", ""),
        lambda graph: graph.add_node("Exp", [graph.inputs[0]], 1),
        lambda graph: graph.replace_uses(graph.nodes[0].output, graph.inputs[0]),
    ]
    for edit in edits:
        given = model()
        before = content(given)
        with pytest.raises(PassError, match="Edits is an annotation, but it changed the structure"):
            annotation(edit)(given)
        assert content(given) == before
    annotation(lambda graph: graph.set_metadata(graph.nodes[0], {"a": "b"}))(model())


def test_kinds_of_passes_are_recorded() -> None:
    def call(self: Any, model: Model) -> None:
        model.main.rename_node(model.main.nodes[0], "renamed")

    def changing(self: Any, model: Model) -> None:
        node = model.main.nodes[0]
        model.main.replace(node, [model.main.op.Neg(node.inputs[0])])

    def made(*bases: Any, **members: Any) -> Any:
        return type("Made", bases, members)

    def info(cls: Any) -> object:
        found = pass_of(cls).info
        return found.name, found.kind, found.opt_level, str(found.numerics), found.followed_by

    def ran(cls: Any) -> object:
        after = cls()(model())
        return ops(after), after.main.nodes[0].name

    def rules(patterns: Any, checks: Any, rewrites: Any) -> Any:
        return made(RewriteRuleSetPass, pattern=lambda self: patterns, check=lambda self: checks,
                    rewrite=lambda self: rewrites)  # fmt: skip

    names = {
        **vars(kinds), "made": made, "info": info, "ran": ran, "call": call, "rules": rules,
        "changing": changing, "ComposePass": ComposePass, "DropNeg": DropNeg, "Numerics": Numerics,
        "relu": lambda op, x: op.Relu(op.Relu(x)), "one": lambda op, x: op.Relu(x),
        "pass_of": pass_of,
        "neg": lambda op, x: op.Neg(x), "same": lambda op, x: x, "never": lambda op, x: False,
        "fails": lambda self, model: False, "holds": lambda self, model: None,
    }  # fmt: skip
    assert_values(__file__, names)
