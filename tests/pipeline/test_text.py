"""Pipelines as text, and back."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import tiered
from tests.small import fuse_relu, keep_abs, look, registered, rename_graph
from tiered import Fixpoint, Pass, Sequential, default_pipeline, parse_pipeline
from tiered.pipeline import Pipeline
from tiered.pipeline.text import names_in
from tiered.support.errors import OptionError, PassNotFoundError, PipelineSyntaxError

PASSES = (fuse_relu, keep_abs, look, rename_graph)


@pytest.fixture(autouse=True, scope="module")
def _named() -> Iterator[None]:
    with registered(*PASSES):
        yield


NAMES = st.sampled_from(["cleanup", "a.b", "X-1"])
LEVELS = st.integers(0, 4)


def pipelines(inner: st.SearchStrategy[Pass]) -> st.SearchStrategy[Pass]:
    several = st.lists(inner, max_size=3)
    return st.builds(
        Sequential,
        several,
        name=st.none() | NAMES,
        opt_level=LEVELS,
        opt_ins=st.sampled_from(["run", "parked"]),
    ) | st.builds(
        Fixpoint,
        several,
        name=st.just("") | NAMES,
        max_rounds=st.none() | st.integers(1, 9),
        opt_level=LEVELS,
    )


# All characters that the text gives a meaning, and others; to know all of Unicode takes seconds.
TEXT = st.text("".join(map(chr, range(128))) + "\x85\xa0é漢\u2028😀")

LEAVES = (
    st.sampled_from(PASSES)
    | st.builds(rename_graph.with_options, suffix=TEXT, times=st.integers())
    | st.builds(fuse_relu.on, TEXT.filter(bool))
)
ANY = st.recursive(LEAVES, pipelines, max_leaves=8)


def shape(pass_: Pass) -> object:
    """Return what a pass is made of, to compare without its text."""
    if isinstance(pass_, Pipeline):
        return type(pass_), pass_.group, pass_.options, [shape(inner) for inner in pass_]
    return pass_.name, pass_.options, pass_.scope


# The first text that Hypothesis makes in a new checkout takes it a second.
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(ANY, max_size=4))
def test_every_pipeline_reads_back_as_itself(passes: list[Pass]) -> None:
    written = Sequential(passes)
    read = parse_pipeline(str(written))
    assert read == written
    assert read.digest == written.digest
    assert shape(read) == shape(written)


@settings(deadline=None)  # the first one loads what reads scopes
@given(ANY)
def test_every_pass_reads_back_as_itself(pass_: Pass) -> None:
    read = parse_pipeline(str(pass_))
    assert str(read) == str(pass_) or list(read) == [pass_]


def test_the_default_pipeline_reads_back_as_itself() -> None:
    assert parse_pipeline(str(default_pipeline())) == default_pipeline()
    assert parse_pipeline("default") == default_pipeline()


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("look", "look"),
        (" look , fuse_relu ", "look,fuse_relu"),
        ("Look,fuse-relu", "look,fuse_relu"),
        ("constant_folding", "fold_constant"),
        ("fold_constant{ max_growth = 1MB }", "fold_constant{max_growth=1MB}"),
        ("fold_constant{max_growth=1%}", "fold_constant"),
        ("rename_graph{times=2,suffix='2'}", "rename_graph{suffix='2',times=2}"),
        ("fix(look,cleanup(look))", "fix(look,cleanup(look))"),
        ("fix{max_rounds=4}(look)", "fix{max_rounds=4}(look)"),
        ("cleanup{opt_level=3}(look)", "cleanup{opt_level=3}(look)"),
        ("sequential{opt_level=1}(look)", "sequential{opt_level=1}(look)"),
        ("(look,look),look", "(look,look),look"),
        ("(look)", "look"),
        ("((look))", "((look))"),
        ("fuse_relu@/a/**", "fuse_relu@'/a/**'"),
        ("fuse_relu@'a'@\"b\"", "fuse_relu@'a'@'b'"),
        ("(fuse_relu,keep_abs)@x", "fuse_relu@'x',keep_abs@'x'"),
        ("cleanup(fuse_relu)@x", "cleanup(fuse_relu@'x')"),
        ("", ""),
        ("()", ""),
    ],
)
def test_text_has_one_canonical_form(text: str, canonical: str) -> None:
    assert str(parse_pipeline(text)) == canonical


def test_a_glob_stands_for_passes_in_the_order_of_the_default_pipeline() -> None:
    names = [pass_.name for pass_ in parse_pipeline("*")]
    assert sorted(names) == list(tiered.pass_names())
    order = list(dict.fromkeys(leaf.name for leaf in default_pipeline().leaves()))
    assert names[: len(order)] == order


def test_a_glob_may_have_options_and_a_scope() -> None:
    text = str(parse_pipeline("fold_const*{max_growth=2%}@'/a'"))
    assert text == "fold_constant{max_growth=2%}@'/a'"


def test_an_alias_may_stand_for_two_passes() -> None:
    assert str(parse_pipeline("fuse_bn")) == "fuse_bn_into_conv,fuse_bn_into_gemm"


@pytest.mark.parametrize(
    ("text", "expected", "column"),
    [
        ("look,", "the name of a pass", 6),
        (",look", "the name of a pass", 1),
        ("look look", "the end", 6),
        ("look)", "the end", 5),
        ("fix(look", "')'", 9),
        ("fix(look,)", "the name of a pass", 10),
        ("rename_graph{times}", "'='", 19),
        ("rename_graph{times=}", "a value", 20),
        ("rename_graph{times=1", "','", 21),
        ("rename_graph{=1}", "the name of an option", 14),
        ("fuse_relu@", "a scope", 11),
        ("fuse_relu@'a", "a string that ends with '", 11),
    ],
)
def test_a_syntax_error_points_at_the_place(text: str, expected: str, column: int) -> None:
    with pytest.raises(PipelineSyntaxError) as caught:
        parse_pipeline(text)
    message = str(caught.value)
    assert message.startswith(f"expected {expected} at column {column}\n  {text}\n")
    assert message.splitlines()[-1] == " " * (column + 1) + "^"


def test_wrong_names_and_options_are_said_as_everywhere() -> None:
    with pytest.raises(PassNotFoundError, match="did you mean 'fuse_relu'"):
        parse_pipeline("look,fix(fuse_relo)")
    with pytest.raises(PassNotFoundError, match="no pass fits 'x_\\*'"):
        parse_pipeline("x_*")
    with pytest.raises(OptionError, match="rename_graph: option 'times' takes an integer"):
        parse_pipeline("rename_graph{times=many}")
    with pytest.raises(OptionError, match="fix has no option 'rounds'; did you mean 'max_rounds'"):
        parse_pipeline("fix{rounds=3}(look)")
    with pytest.raises(OptionError, match="'times' is given twice"):
        parse_pipeline("rename_graph{times=1,times=2}")
    with pytest.raises(PipelineSyntaxError, match="'rename_graph@x': rename_graph is a module"):
        parse_pipeline("look,rename_graph@x")


def test_names_are_no_words_of_options_and_scopes() -> None:
    text = "look, group{max_rounds=4}(fuse_relu@'keep_abs', rename_graph{times=1})@x, (keep_*)"
    assert names_in(text) == ("look", "fuse_relu", "rename_graph", "keep_*")


def test_only_text_is_text() -> None:
    with pytest.raises(PipelineSyntaxError, match="a pipeline is a string"):
        parse_pipeline(3)  # type: ignore[arg-type]  # the point


def test_fixpoint_is_the_fixed_point() -> None:
    made = parse_pipeline("fixpoint(eliminate_identity, fold_constant)")
    assert str(made) == "fix(eliminate_identity,fold_constant)"
