"""What is known of a pass: its declarations, its docstring, and what options change."""

import copy
import pickle
from pathlib import Path
from typing import Any

import pytest

import tiered
from tests.small import (
    fuse_relu,
    look,
    model,
)
from tiered import (
    Sequential,
)
from tiered.passes.interface.pass_info import (
    Decision,
    NodeRules,
    PassInfo,
    PassResult,
    Place,
    docstring_in,
)
from tiered.passes.policy.node_scope import Scope
from tiered.support.errors import UsageError
from tiered.support.numerics import Numerics, Promise


def test_every_info_has_a_hash() -> None:
    group = Sequential([fuse_relu], name="group", checks=["final_check"])
    infos = [pass_.info for pass_ in (*tiered.get_registered_passes().values(), group)]
    assert len({*infos, *infos}) == len(infos)


def test_all_but_the_name_are_keywords() -> None:
    for arguments in (("x", 3), (3,), ("x", 3, True)):
        with pytest.raises(UsageError, match="PassInfo takes the name of a pass, and the rest by"):
            PassInfo(*arguments)
    info = PassInfo("x", opt_level=3, required=("y",))
    assert (info.name, info.opt_level, info.kind, info.required) == ("x", 3, "module", ("y",))
    assert PassInfo("x").opt_level == 0
    assert pickle.loads(pickle.dumps(info)) == info
    assert copy.deepcopy(info) == info
    assert info._replace(name="z").name == "z"


def test_an_older_word_warns_where_it_is_read() -> None:
    info: Any = PassInfo("x", makes=("Relu",))
    with pytest.warns(DeprecationWarning, match=r"^PassInfo\.needs is makes now") as caught:
        assert info.needs == ("Relu",)
    assert caught[0].filename == __file__
    with pytest.raises(AttributeError, match=r"^a PassInfo has no 'wurst'$"):
        _ = info.wurst


def test_a_pass_of_the_package_is_built_in_and_has_the_docstring_of_its_file() -> None:
    own = tiered.get_pass("eliminate_identity").info
    assert own.is_built_in
    assert own.is_in_own_file
    assert own.prose == ""
    assert own.doc.strip()
    mine = look.info
    assert (mine.is_built_in, mine.is_in_own_file) == (False, False)
    assert mine.doc == mine.prose == "Change nothing."


def test_a_docstring_is_found_by_the_name_of_its_function(tmp_path: Path) -> None:
    path = tmp_path / "some.py"
    text = 'def one():\n    "The one."\nclass Two:\n    "The other."\ndef bare(): ...\n'
    path.write_text(text, encoding="utf-8")
    for name, expected in (("one", "The one."), ("Two", "The other."), ("bare", ""), ("no", "")):
        assert docstring_in(str(path), name) == expected


@pytest.mark.parametrize(
    ("declared", "expected"),
    [({}, False), ({"makes": ("d::N",)}, True), ({"may_make": ("d::N",)}, True),
     ({"quantization": "qdq"}, True)],
)  # fmt: skip
def test_what_depends_on_the_target(declared: Any, expected: bool) -> None:
    assert PassInfo("x", **declared).asks_target is expected


@pytest.mark.parametrize(
    ("level", "choice", "numerics", "least"),
    [
        (1, "exact", Numerics.EXACT, 1),
        (0, "reassociating", Numerics.REASSOCIATING, 3),
        (4, "reassociating", Numerics.REASSOCIATING, 4),
        (1, "approximate", Numerics.APPROXIMATE, 4),
        (1, "lossy", Numerics.LOSSY, None),
        (None, "reassociating", Numerics.REASSOCIATING, None),
        (1, "fast", Numerics.REASSOCIATING, 3),
        (1, "", Numerics.EXACT, 1),
        (1, False, Numerics.EXACT, 1),
        (1, True, Numerics.REASSOCIATING, 3),
    ],
)
def test_an_option_may_set_the_promise_and_with_it_the_lowest_level(
    level: int | None, choice: object, numerics: Numerics, least: int | None
) -> None:
    info = PassInfo("x", opt_level=level, numerics_option="mode")
    made = info.with_options({"mode": choice})
    assert (made.numerics, made.opt_level) == (numerics, least)
    assert info.with_options({"other": choice}) is info


def test_an_option_may_change_the_interface() -> None:
    info = PassInfo("x", opt_level=None, interface_options=(("keep", False), ("all", True)))
    for options, expected in (
        ({"keep": True, "all": False}, False),
        ({"keep": False, "all": False}, True),
        ({"keep": True, "all": True}, True),
        ({}, False),
    ):
        assert info.with_options(options).changes_interface is expected
    assert info.with_options({"keep": True}) is info
    changes = info._replace(changes_interface=True)
    assert changes.with_options({"keep": False}) is changes
    assert not changes.with_options({"keep": True}).changes_interface
    always = PassInfo("x", opt_level=None, changes_interface=True)
    assert always.with_options({"keep": True}) is always


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("rewrite", True), ("function", True), ("module", False), ("proto", False),
     ("pipeline", False)],
)  # fmt: skip
def test_rules_and_function_passes_work_node_by_node(kind: str, expected: bool) -> None:
    assert PassInfo("x", kind=kind).is_node_wise is expected


def test_the_place_beside_a_pass_is_no_occurrence() -> None:
    place = Place(occurrence=3, groups=("g",), asked=True)
    beside = place.beside("x")
    assert (beside.occurrence, beside.needed_by) == (0, "x")
    assert (beside.groups, beside.asked) == (("g",), True)
    first = Place()
    assert (first.occurrence, first.parks, first.asked, first.forced) == (1, False, False, False)


def test_the_first_scope_that_holds_a_node_decides() -> None:
    given = model()
    a, b, c, _ = given.main.topological_order()
    one, two = Scope.of("node_a"), Scope.of("node_*")
    rules = NodeRules(scoped=((one, False), (two, True)), otherwise=False)
    assert [rules.allow(node) for node in (a, b, c)] == [False, True, True]
    assert NodeRules(scoped=((one, False),), otherwise=True).allow(b)
    assert not NodeRules(scoped=(), otherwise=False).allow(b)


def test_a_decision_is_true_if_the_pass_runs() -> None:
    assert Decision(True, "")
    assert not Decision(False, "a reason")


def test_a_result_has_the_name_of_its_pass() -> None:
    result = PassResult(PassInfo("x"), "x{k=1}", True, "")
    assert (result.name, result.changed, result.error, result.missed) == ("x", False, None, ())


def test_the_law_is_that_of_the_own_file_unless_one_is_given() -> None:
    own = tiered.get_pass("eliminate_identity").info
    assert own.law == "Identity(x)  =>  x"
    assert own._replace(law="another").law == "another"
    assert own._replace(name="other").law == ""
    assert not own._replace(name="other").is_in_own_file
    assert own._replace(name="other").is_built_in
    assert not PassInfo("x", source="/elsewhere/x.py").is_in_own_file


def test_a_promise_is_the_class_or_the_limits() -> None:
    assert PassInfo("x").promise == Promise(Numerics.EXACT)
    assert PassInfo("x", numerics=Numerics.LOSSY).promise == Promise(Numerics.LOSSY)
    limits = Promise(Numerics.REASSOCIATING, rtol=0.5)
    assert PassInfo("x", limits=limits).promise is limits
