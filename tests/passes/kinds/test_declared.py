"""The older words of declarations go on working, with a warning that names the new word."""

from typing import Any

import pytest

import tiered
from tests.small import model
from tiered import Graph, Model, PassBase, PassContext, op, proto_pass, rewrite, var
from tiered.passes.interface.pass_info import PassInfo
from tiered.support.errors import PreconditionError, UsageError
from tiered.support.moved import DECLARATIONS


def has_conv(model: Graph | Model) -> bool:
    return False


OLD = {
    "needs": ["d::N"], "offers": ["d::O"], "looks_for": ["Neg"], "acts_on": ["Relu"],
    "requires": has_conv, "ensures": has_conv,
}  # fmt: skip


@pytest.mark.parametrize("word", DECLARATIONS)
def test_an_older_word_is_the_new_one_with_a_warning(word: str) -> None:
    new = DECLARATIONS[word]
    old: Any = {word: OLD[word]}
    current: Any = {new: OLD[word]}
    with pytest.warns(DeprecationWarning, match=f"{word}= of a pass is {new}= now") as caught:
        made = tiered.function_pass(opt_level=0, name="a", **old)(lambda g, c: None)
    again = tiered.function_pass(opt_level=0, name="a", **current)(lambda g, c: None)
    assert made.info == again.info._replace(source=made.info.source)
    assert made.body.operators == again.body.operators
    assert bool(made.conditions) == bool(again.conditions)
    assert caught[0].filename == __file__


def test_rules_and_lifted_functions_take_older_words() -> None:
    old: Any = {"name": "a", "offers": ["d::O"]}
    with pytest.warns(DeprecationWarning, match="offers= of a pass is may_make= now") as at_rule:
        rule = rewrite(op.Relu(var.x), opt_level=0, **old)(lambda g, x: x)
    with pytest.warns(DeprecationWarning, match="offers= of a pass is may_make= now") as at_lifted:
        lifted = proto_pass(lambda proto: proto, **old)
    assert (rule.info.may_make, lifted.info.may_make) == (("d::O",), ("d::O",))
    assert (at_rule[0].filename, at_lifted[0].filename) == (__file__, __file__)


def test_a_class_may_have_conditions_under_their_older_names() -> None:
    class Checked:
        def transform_module(self, model: Model, ctx: PassContext) -> None:
            """Change nothing."""

        def requires(self, model: Model) -> bool:
            return False

    class Based(PassBase):
        def requires(self, model: Model) -> bool:
            return False

    for pass_ in (tiered.module_pass(opt_level=0)(Checked), Based()):
        with (
            pytest.warns(DeprecationWarning, match=r"\.requires is precondition now"),
            pytest.raises(PreconditionError, match=r"\.requires of the model"),
        ):
            pass_(model())


def test_an_info_has_its_fields_under_their_older_names() -> None:
    info = PassInfo("a", touches=("Relu",))
    with pytest.warns(DeprecationWarning, match=r"PassInfo\.acts_on is touches now"):
        assert info.acts_on == ("Relu",)  # type: ignore[attr-defined]  # an older word
    for name in ("requires", "nothing"):
        with pytest.raises(AttributeError, match=f"a PassInfo has no '{name}'"):
            getattr(info, name)


def test_a_word_that_declares_nothing_is_an_error() -> None:
    with pytest.raises(UsageError, match="a pass declares no 'reqired'; did you mean 'required'"):
        tiered.function_pass(opt_level=0, reqired=["infer_shapes"])  # type: ignore[call-arg]  # a typo
