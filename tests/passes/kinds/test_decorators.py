"""What a decorator makes of a function or a class, and the declarations that do not fit."""

import sys
import types
from typing import Any

import pytest

import tiered
from tests.small import (
    look,
    model,
)
from tiered import (
    Model,
    PassContext,
    PassInfo,
    op,
    var,
)
from tiered.passes.kinds.decorators import _source
from tiered.support.errors import UsageError
from tiered.support.numerics import Numerics, Promise


def test_the_info_says_what_was_declared() -> None:
    @tiered.module_pass(
        opt_level=3, required=["infer_shapes"], followed_by=["look"], numerics="reassociating"
    )
    def declared(model: Model, ctx: PassContext, *, size: int = 4) -> None:
        """Of no meaning."""

    info = declared.info
    assert (info.name, info.opt_level, info.kind) == ("declared", 3, "module")
    assert (info.required, info.followed_by) == (("infer_shapes",), ("look",))
    assert info.numerics is tiered.Numerics.REASSOCIATING
    assert info.doc == "Of no meaning."
    assert info.source.startswith(f"{__file__}:")
    assert [option.name for option in info.options] == ["size"]


def test_the_law_is_the_first_line_of_the_file_of_the_pass() -> None:
    assert tiered.get_pass("eliminate_identity").info.law == "Identity(x)  =>  x"
    assert look.info.law == ""


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"opt_level": "2"}, "opt_level takes an integer from 0, or None"),
        ({"opt_level": True}, "opt_level takes an integer from 0, or None"),
        ({"opt_level": -1}, "opt_level takes an integer from 0, or None"),
        ({"opt_level": 0, "required": "infer_shapes"}, "required takes a list of names"),
        ({"opt_level": 0, "numerics": "close"}, "numerics is one of exact, "),
        ({"opt_level": 4, "numerics": "lossy"}, "is lossy, so no level may imply it"),
        ({"opt_level": 4, "changes_interface": True}, "changes the interface, so no level"),
    ],
)
def test_a_declaration_that_does_not_fit_is_refused(declared: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        tiered.function_pass(**declared, name="named")(lambda graph, ctx: None)


def test_the_level_must_be_said() -> None:
    with pytest.raises(TypeError, match="opt_level"):
        tiered.function_pass()  # type: ignore[call-arg]  # the point


@pytest.mark.parametrize("thing", [lambda graph, ctx: None, 3, type("1", (), {})])
def test_a_pass_needs_a_name_that_text_can_hold(thing: Any) -> None:
    with pytest.raises(UsageError, match=r"is no name of a pass|is made of a function"):
        tiered.function_pass(opt_level=0)(thing)


def test_a_pass_function_takes_a_context() -> None:
    with pytest.raises(UsageError, match="takes two arguments"):
        tiered.module_pass(opt_level=0, name="short")(lambda model: None)


def test_a_class_without_the_method_is_refused() -> None:
    with pytest.raises(UsageError, match="has a method transform_module"):
        tiered.module_pass(opt_level=0)(type("Empty", (), {}))


def info_of(**declared: Any) -> PassInfo:
    """Return the info of a function pass with these declarations."""
    declared = {"opt_level": 0, "name": "named", **declared}
    return tiered.function_pass(**declared)(lambda graph, ctx: None).info


def test_what_is_not_declared_is_empty() -> None:
    info = info_of()
    empty = (
        info.required, info.followed_by, info.conflicts, info.makes, info.may_make, info.touches,
        info.interface_options, info.options,
    )  # fmt: skip
    assert empty == ((),) * 8
    assert (info.quantization, info.legalizes, info.law, info.replacement) == ("",) * 4
    assert (info.changes_interface, info.analysis, info.life) == (False, False, "stable")
    assert (info.numerics, info.limits) == (Numerics.EXACT, None)


def test_declarations_are_those_of_the_info() -> None:
    info = info_of(
        opt_level=None, conflicts=["a"], makes=["d::N"], may_make=["d::O"], quantization="qdq",
        changes_interface=True, interface_options={"k": 1}, analysis=True, life="preview",
        numerics_option="k", matches=["Conv", "function", "body"], touches=["Relu", "Add"],
    )  # fmt: skip
    assert (info.conflicts, info.makes, info.may_make) == (("a",), ("d::N",), ("d::O",))
    assert (info.quantization, info.changes_interface, info.analysis) == ("qdq", True, True)
    assert (info.interface_options, info.numerics_option) == ((("k", 1),), "k")
    assert info.touches == ("Add", "Conv", "Relu")
    assert (info.opt_level, info.life) == (None, "preview")
    assert info_of(touches=["Relu", "*"]).touches == ("*",)


def test_a_promise_has_its_own_limits() -> None:
    promise = Promise(Numerics.APPROXIMATE, rtol=1e-2)
    info = info_of(numerics=promise)
    assert (info.numerics, info.limits, info.promise) == (Numerics.APPROXIMATE, promise, promise)


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"opt_level": 2.0}, "named: opt_level takes an integer from 0, or None, not 2.0"),
        ({"conflicts": [1]}, r"named: conflicts takes a list of names, not \[1\]"),
        ({"matches": "Conv"}, "named: matches takes a list of names, not 'Conv'"),
        ({"legalizes": True}, "named: legalizes= is for rules, made with @rewrite"),
        ({"life": "old"}, "named: life is one of preview, stable, deprecated, not 'old'"),
        ({"life": "deprecated"}, "named: a deprecated pass has a replacement"),
        ({"replacement": "x"}, "named: a deprecated pass has a replacement, and no other has one"),
        ({"name": "1st"}, "'1st' is no name of a pass; give one with name="),
        ({"name": "a b"}, "'a b' is no name of a pass"),
    ],
)
def test_a_declaration_says_what_it_takes(declared: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        info_of(**declared)


def test_a_name_may_have_dots_and_dashes() -> None:
    assert info_of(name="mine.fuse-x2").name == "mine.fuse-x2"


@pytest.mark.parametrize(
    ("declared", "legalizes"),
    [({}, ""), ({"legalizes": True}, "default"), ({"legalizes": "m"}, "m")],
)
def test_a_rule_has_the_operators_of_its_pattern(declared: Any, legalizes: str) -> None:
    pattern = op.Relu(op("d").F(var.x) | op.Neg(var.x))
    pass_ = tiered.rewrite(pattern, opt_level=1, name="named", touches=["Add"], **declared)(
        lambda graph, x: x
    )
    assert pass_.info.touches == ("Add", "Neg", "Relu", "d::F")
    assert (pass_.info.kind, pass_.info.legalizes) == ("rewrite", legalizes)
    assert pass_.rule.pattern is pattern
    assert pass_.rule.law == str(pattern)


def test_a_rule_takes_what_it_looks_for_from_its_pattern() -> None:
    with pytest.raises(UsageError, match="named: a rule takes `matches` from its pattern"):
        tiered.rewrite(op.Relu(var.x), opt_level=1, name="named", matches=["Relu"])(
            lambda graph, x: x
        )


def test_the_name_of_a_class_is_its_words() -> None:
    class FuseThisThing:
        def transform_module(self, model: Model, ctx: PassContext) -> None:
            """Change nothing."""

    assert tiered.module_pass(opt_level=0)(FuseThisThing).name == "fuse_this_thing"
    assert tiered.module_pass(opt_level=0, name="other")(FuseThisThing).name == "other"


def test_the_conditions_of_a_class_are_its_methods() -> None:
    asked: list[str] = []

    class Checked:
        def precondition(self, model: Model, ctx: PassContext) -> None:
            asked.append("precondition")

        def postcondition(self, model: Model, ctx: PassContext) -> None:
            asked.append("postcondition")

        def transform_module(self, model: Model, ctx: PassContext) -> None:
            asked.append("runs")

    tiered.module_pass(opt_level=0)(Checked)(model())
    assert asked == ["precondition", "runs", "postcondition"]


def test_options_of_a_function_without_a_signature_that_fits_are_refused() -> None:
    with pytest.raises(UsageError, match="options by keyword"):
        tiered.module_pass(opt_level=0, name="named")(lambda model, ctx, size: None)
    more = tiered.module_pass(opt_level=0, name="named")(lambda model, ctx, *, size=3: None)
    assert dict(more.options) == {"size": 3}


def test_a_file_of_another_name_is_named_with_the_line() -> None:
    assert look.info.law == ""
    source, _, line = look.info.source.rpartition(":")
    assert source.endswith("small.py")
    assert int(line) > 1
    own = tiered.get_pass("eliminate_identity").info
    assert own.source.endswith("eliminate_identity.py")
    assert own.prose == ""
    assert own.doc


def test_the_name_of_a_function_is_kept_and_that_of_a_class_unless_given() -> None:
    def CamelCase(graph: Any, ctx: Any) -> None: ...

    class OfClass:
        def transform_graph(self, graph: Any, ctx: Any) -> None: ...

    made = tiered.function_pass(opt_level=0)
    assert made(CamelCase).name == "CamelCase"
    assert made(OfClass).name == "of_class"
    assert tiered.function_pass(opt_level=0, name="OfClass")(OfClass).name == "OfClass"
    assert made(CamelCase).info.prose == ""


def test_the_law_is_that_of_the_file_with_the_name_of_the_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = types.ModuleType("mine", "a  =>  b\n\nMore.")
    monkeypatch.setitem(sys.modules, "mine", module)

    def mine(graph: Any, x: Any) -> Any: ...

    mine.__module__ = "mine"
    laws = []
    for file in ("/x/mine.py", "/x/other.py", None):
        module.__file__ = file
        made = tiered.rewrite(op.Neg(var.x), opt_level=0)(mine)
        laws.append((made.info.law, made.rule.law))
    pattern = str(op.Neg(var.x))
    assert laws == [("a  =>  b", "a  =>  b"), ("", pattern), ("", pattern)]
    module.__file__, module.__doc__ = "/x/mine.py", None
    assert tiered.rewrite(op.Neg(var.x), opt_level=0)(mine).info.law == ""


def test_the_source_of_an_object_is_the_file_of_its_module(monkeypatch: pytest.MonkeyPatch) -> None:
    class Called:
        def __call__(self, graph: Any, ctx: Any) -> None: ...

    called: Any = Called()
    assert _source(called, "x") == __file__
    called.__module__ = "no_such_module"
    assert _source(called, "x") == ""
    monkeypatch.setitem(sys.modules, "without_file", types.ModuleType("without_file"))
    called.__module__ = "without_file"
    assert _source(called, "x") == ""
    line = test_a_file_of_another_name_is_named_with_the_line.__code__.co_firstlineno
    named = test_a_file_of_another_name_is_named_with_the_line
    assert _source(named, "test_decorators") == __file__
    assert _source(named, "x") == f"{__file__}:{line}"
    called.__module__ = __name__
    assert tiered.function_pass(opt_level=0, name="x")(called).info.options == ()


def test_only_a_function_of_anybody_else_may_have_any_options() -> None:
    def third(model: Any, *, size: int) -> Any:
        return model

    assert tiered.proto_pass(third).info.options == ()
    with pytest.raises(UsageError, match="option 'size' needs a default"):
        tiered.module_pass(opt_level=0)(third)
