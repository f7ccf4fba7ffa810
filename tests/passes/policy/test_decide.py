"""Decisions: levels, entries of required and disabled, places and scopes."""

import inspect
import os
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import pytest

import tiered
from tests.small import (
    drop_neg,
    fuse_relu,
    keep_abs,
    look,
    model,
    proto,
    registered,
    rename_graph,
)
from tiered import Pass, PassContext, Sequential
from tiered.passes.interface.pass_info import Decision, PassInfo, Place, Runnable
from tiered.support.errors import (
    PassNotFoundError,
    UsageError,
)

PASSES = (fuse_relu, drop_neg, keep_abs, rename_graph, look)


@pytest.fixture(autouse=True)
def _named() -> Iterator[None]:
    with registered(*PASSES):
        yield


def decides(pass_: Pass | str, place: Place | None = None, **settings: Any) -> bool:
    return PassContext(**settings).decide(pass_, place).run


class Declared(NamedTuple):
    """A pass of which only the declarations count."""

    info: PassInfo
    text: str = "x"


def decided(declared: dict[str, Any], place: Place = Place(), **settings: Any) -> tuple[bool, str]:  # noqa: B008 - a value
    pass_ = cast(Runnable, Declared(PassInfo("x", **declared)))
    decision = PassContext(**settings).decide(pass_, place)
    assert decision.nodes is None
    return decision.run, decision.reason


# --- decisions ------------------------------------------------------------------------------------


BIAS_GELU = {"makes": ("com.microsoft::BiasGelu",)}
LOW = (True, "opt_level 2 includes level 0")


def test_the_target_decides_about_operators_and_quantised_forms() -> None:
    cpu, made = "onnxruntime_cpu", {"quantization": "operators"}
    lacks = "needs com.microsoft::BiasGelu, which the backend portable does not have"
    high = (False, "needs opt_level 3; it is 2, the default")
    rows: list[tuple[dict[str, Any], dict[str, Any], tuple[bool, str]]] = [
        (BIAS_GELU, {"backend": "portable"}, (False, lacks)),
        (BIAS_GELU, {"backend": cpu}, LOW),
        ({"makes": ("d::Odd", *BIAS_GELU["makes"])}, {"backend": cpu}, LOW),
        ({"makes": ("d::Odd", "d::Even")}, {"backend": cpu},
         (False, "needs d::Odd or d::Even, which the backend onnxruntime_cpu does not have")),
        ({**BIAS_GELU, "opt_level": 3}, {"backend": "portable"}, high),
        (made, {"backend": "portable"},
         (False, "makes quantised operators; the backend portable does not want quantised models")),
        (made, {"backend": cpu}, LOW),
        ({"quantization": "odd"}, {"backend": cpu},
         (False, "makes quantised odd; the backend onnxruntime_cpu wants operators")),
        ({**made, "opt_level": 3}, {"backend": "portable"}, high),
    ]  # fmt: skip
    for declared, settings, expected in rows:
        assert decided(declared, **settings) == expected, (declared, settings)
    with PassContext(backend="portable"):
        assert decided(BIAS_GELU, backend=cpu) == decided(made, backend=cpu) == LOW


def test_the_place_decides_before_the_level() -> None:
    rows: list[tuple[dict[str, Any], Place, tuple[bool, str]]] = [
        ({"opt_level": 4}, Place(needed_by="y"), (True, "needed by y")),
        ({"opt_level": 4}, Place(asked=True), (True, "asked for by name")),
        ({"opt_level": None}, Place(), (True, "asked for by name")),
        ({"opt_level": None}, Place(parks=True), (False, "opt-in: runs only when required")),
        ({"opt_level": 1}, Place(parks=True), (True, "opt_level 2 includes level 1")),
        ({"life": "preview"}, Place(), (False, "in preview: runs only when required")),
    ]
    for declared, place, expected in rows:
        assert decided(declared, place) == expected, (declared, place)
    forced = Place(forced=True)
    assert PassContext(disabled=["look"]).decide(look, forced) == (True, "applied directly", None)


def test_scopes_that_agree_with_the_rest_decide_nothing() -> None:
    ctx = PassContext(3, required=["drop_neg@'/x'"])
    assert ctx.decide(drop_neg) == (True, "opt_level 3 includes level 3", None)
    ctx = PassContext(required=["drop_neg"])
    assert ctx.decide(drop_neg) == (True, f"required by 'drop_neg', set at {ctx.site}", None)


def test_a_pass_needs_what_it_requires() -> None:
    pass_ = tiered.function_pass(opt_level=0, name="needs", required=["look"])(lambda g, c: None)
    for settings in (
        {}, {"required": ["look"]}, {"required": ["look"], "opt_level": 0},
        {"disabled": ["fuse_relu"]}, {"disabled": ["look@'/x'"]}, {"disabled": ["look:1"]},
    ):  # fmt: skip
        assert PassContext(**settings).decide(pass_).run, settings
    ctx = PassContext(disabled=["look"])
    reason = f"needs look, which is disabled by 'look', set at {ctx.site}"
    assert ctx.decide(pass_) == (False, reason, None)
    with pytest.raises(UsageError, match=r"^needs needs look, which is disabled by 'look', set at"):
        PassContext(disabled=["look"], strict=True).decide(pass_)
    with PassContext(strict=True):
        assert not PassContext(disabled=["look"], strict=False).decide(pass_)


@pytest.mark.parametrize(("level", "runs"), [(0, False), (2, False), (3, True), (4, True)])
def test_the_level_decides_where_nobody_mentions_the_pass(level: int, runs: bool) -> None:
    assert decides(drop_neg, opt_level=level) is runs


def test_the_default_level_is_two() -> None:
    assert PassContext().opt_level == 2
    assert decides(keep_abs)
    assert not decides(drop_neg)


def test_required_beats_the_level_and_disabled_beats_required() -> None:
    assert decides(drop_neg, opt_level=0, required=["drop_neg"])
    assert not decides(look, disabled=["look"])
    assert not decides(look, required=["look"], disabled=["lo*"])
    assert not decides(look, required=["l*"], disabled=["look"])


@pytest.mark.parametrize(
    "entry", ["fuse_relu", "FuseRelu", "fuse-relu", "fuse_*", "*relu", fuse_relu]
)
def test_entries_name_passes_in_many_ways(entry: Pass | str) -> None:
    assert not decides("fuse_relu", disabled=[entry])
    assert decides(look, disabled=[entry])


def test_an_alias_that_stands_for_two_disables_both() -> None:
    for name in ("fuse_bn_into_conv", "fuse_bn_into_gemm"):
        assert not decides(name, opt_level=3, disabled=["fuse_bn"])


@pytest.mark.parametrize("argument", ["required", "disabled"])
@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (["fuse_rleu"], "no pass named 'fuse_rleu'; did you mean 'fuse_relu'"),
        (["fusing_*"], r"no pass fits 'fusing_\*'"),
        ([" fuse_relu:x"], "no pass|no entry"),
        (["a/b:c"], "is no entry"),
        (["schedule{dims=[N=2]}"], "has options; expected the name 'schedule'"),
        ("fuse_relu", r"takes a list of passes, not a string: \['fuse_relu'\]"),
        (fuse_relu, "takes a list of passes, not"),
        (None, "takes a list of passes, not None"),
        ([3], "takes names and passes, not 3"),
        (["rename_graph@'/a/**'"], "rename_graph is a module pass"),
    ],
)
def test_wrong_entries_raise_at_once(argument: str, entries: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        PassContext(**{argument: entries})


@pytest.mark.parametrize("other", ["fuse_relu", "FuseRelu", fuse_relu])
def test_the_same_name_required_and_disabled_is_an_error(other: Any) -> None:
    with pytest.raises(UsageError, match=r"required and .* disabled in the same context"):
        PassContext(required=["fuse_relu"], disabled=[other])


def test_a_pass_with_options_is_meant_with_those_options_only() -> None:
    twice = rename_graph.with_options(times=2)
    with PassContext(disabled=[twice]) as ctx:
        assert not ctx.decide(twice)
        assert ctx.decide(rename_graph)
    with PassContext(disabled=[rename_graph]) as ctx:
        assert not ctx.decide(twice)


def test_decisions_say_why_and_where_it_was_set() -> None:
    with PassContext(opt_level=1, disabled=["fuse_*"]) as ctx:
        disabled = ctx.decide(fuse_relu)
        assert disabled == Decision(False, f"disabled by 'fuse_*', set at {ctx.site}")
        assert ctx.decide(drop_neg).reason == f"needs opt_level 3; it is 1, set at {ctx.site}"
        assert ctx.decide(look).reason == "opt_level 1 includes level 0"
        assert ctx.decide(rename_graph).reason == "asked for by name"


def test_the_place_is_the_line_of_the_user() -> None:
    line, ctx = inspect.currentframe().f_lineno, PassContext()  # type: ignore[union-attr]  # CPython
    assert str(ctx.site) == f"{os.path.relpath(__file__)}:{line}"


def test_opt_ins_wait_only_where_they_are_parked() -> None:
    parked = Place(parks=True)
    assert decides(rename_graph, opt_level=0)
    assert not decides(rename_graph, parked, opt_level=4)
    assert decides(rename_graph, parked, required=["rename_graph"])
    assert PassContext().decide(rename_graph, parked).reason == "opt-in: runs only when required"


# --- places and scopes ----------------------------------------------------------------------------


def ran(pipeline: Sequential, **settings: Any) -> list[str]:
    """Return `name:occurrence` of the passes of a pipeline that would run."""
    ctx = PassContext(4, **settings)
    return [f"{s.pass_.name}:{s.place.occurrence}" for s in pipeline.plan(ctx) if s.decision]


NESTED = Sequential(
    [look, Sequential([look, fuse_relu], name="cleanup"), tiered.Fixpoint([look], name="again")]
)


@pytest.mark.parametrize(
    ("entry", "left"),
    [
        ("look:1", ["look:2", "fuse_relu:1", "look:3"]),
        ("look:2", ["look:1", "fuse_relu:1", "look:3"]),
        ("look:3", ["look:1", "look:2", "fuse_relu:1"]),
        ("look:4", ["look:1", "look:2", "fuse_relu:1", "look:3"]),
        ("*:1", ["look:2", "look:3"]),
        ("cleanup/look", ["look:1", "fuse_relu:1", "look:3"]),
        ("cleanup/*", ["look:1", "look:3"]),
        ("clean*/look", ["look:1", "fuse_relu:1", "look:3"]),
        ("again/look:3", ["look:1", "look:2", "fuse_relu:1"]),
        ("again/look:1", ["look:1", "look:2", "fuse_relu:1", "look:3"]),
        (NESTED.passes[1], ["look:1", "look:3"]),
    ],
)
def test_entries_mean_places_in_the_pipeline(entry: Any, left: list[str]) -> None:
    assert ran(NESTED, disabled=[entry]) == left


def test_the_places_that_are_planned_are_those_that_run() -> None:
    with PassContext(4, disabled=["look:2", "again/*"]) as ctx:
        NESTED(model())
    leaves = [result for result in ctx.report.results if result.info.kind != "pipeline"]
    assert [(result.name, result.ran) for result in leaves] == [
        ("look", True),
        ("look", False),
        ("fuse_relu", True),
        ("look", False),
    ]


def test_a_group_can_be_disabled_by_name_once_its_pipeline_is_made() -> None:
    group = Sequential([look], name="tidy_up")
    assert ran(Sequential([group, look]), disabled=["tidy_up"]) == ["look:2"]
    assert ran(Sequential([group, look]), disabled=["tidy_up/*"]) == ["look:2"]
    assert ran(Sequential([group, look]), required=["tidy_up"]) == ["look:1", "look:2"]
    with pytest.raises(PassNotFoundError, match=r"no pass named 'tidyup'"):
        PassContext(disabled=["tidyup"])
    with pytest.raises(PassNotFoundError) as caught:
        PassContext(disabled=["not_made_yet"])
    assert "'not_made_yet/*' means what is in it at any time" in caught.value.__notes__[0]
    with pytest.raises(UsageError, match="tidy_up is a group"):
        PassContext(disabled=["tidy_up@'/encoder/**'"])


def test_optimize_knows_the_groups_of_its_passes() -> None:
    source = proto("g (float[2] x) => (float[2] y) { h = Identity(x) y = Neg(h) }")
    kept = tiered.optimize(
        source, passes="sweep(eliminate_identity),eliminate_deadend", disabled=["sweep"]
    )
    assert [node.op_type for node in kept.graph.node] == ["Identity", "Neg"]


def test_a_group_can_be_disabled_by_name_once_it_is_registered() -> None:
    group = Sequential([look], name="cleanup")
    with registered(group):
        assert ran(Sequential([group, look]), disabled=["cleanup"]) == ["look:2"]
        assert ran(Sequential([group, look]), disabled=["clean*"]) == ["look:1", "look:2"]


def test_an_unnamed_pipeline_is_meant_by_no_name() -> None:
    with pytest.raises(PassNotFoundError):
        PassContext(disabled=["sequential"])


PAIRS = """g (float[2] x) => (float[2] y) { a = Neg(x)  b = Neg(a)  c = Neg(b)  y = Abs(c) }"""


def negs_left(**settings: Any) -> list[str]:
    given = proto(PAIRS)
    with PassContext(**settings):
        result = drop_neg(given)
    return [node.name for node in result.graph.node if node.op_type == "Neg"]


@pytest.mark.parametrize(
    ("settings", "left"),
    [
        ({"opt_level": 3, "disabled": ["drop_neg@node_b"]}, ["node_b"]),
        ({"opt_level": 3, "disabled": ["drop_*@'node_[ab]'"]}, ["node_a", "node_b"]),
        ({"opt_level": 0, "required": ["drop_neg@'node_b'"]}, ["node_a", "node_c"]),
        (
            {"required": ["drop_neg@'node_?'"], "disabled": ["drop_neg@'node_a'"]},
            ["node_a"],
        ),
        ({"required": ["drop_neg"], "disabled": ["drop_neg@'node_a'"]}, ["node_a"]),
        (
            {"required": ["drop_neg@'node_a'"], "disabled": ["drop_neg"]},
            ["node_a", "node_b", "node_c"],
        ),
    ],
)
def test_entries_with_a_scope_decide_for_their_nodes(settings: Any, left: list[str]) -> None:
    assert negs_left(**settings) == left


def test_an_inner_context_overrules_an_outer_one_for_some_nodes() -> None:
    with PassContext(disabled=["drop_neg"]):
        assert negs_left(required=["drop_neg@node_b"]) == ["node_a", "node_c"]
