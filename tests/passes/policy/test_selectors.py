"""Entries of `required` and `disabled`: what each text selects, and what is no entry."""

from collections.abc import Iterable

import pytest

from tests.small import fuse_relu, registered
from tiered import Sequential, get_pass
from tiered.passes.interface.pass_info import Place
from tiered.passes.policy.selectors import (
    SITE_NAME,
    Entry,
    Site,
    _unquoted,
    caller,
    check_disjoint,
    entries_of,
)
from tiered.support.errors import PassNotFoundError, UsageError

SITE = Site("file.py", 3)


def entry(text: object) -> Entry:
    (found,) = entries_of([text], "required", SITE)  # type: ignore[list-item]  # a text or a pass
    return found


def place(occurrence: int = 1, *groups: str) -> Place:
    return Place(occurrence=occurrence, groups=groups)


def selects(text: str, name: str = "fold_constant", at: Place | None = None) -> bool:
    return entry(text).selects(get_pass(name), at or place())


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("fold_constant", "fold_constant", True),
        ("fold_constant", "fuse_gelu", False),
        ("FoldConstants", "fold_constant", True),
        ("fuse_*", "fuse_gelu", True),
        ("fuse_*", "fold_constant", False),
        ("f*_gelu", "fuse_gelu", True),
        ("fuse_gelu@'/encoder/**'", "fuse_gelu", True),
        ("f*@'/encoder/**'", "fuse_gelu", True),
        ("i*@'/encoder/**'", "infer_shapes", False),
        ("i*", "infer_shapes", True),
    ],
)
def test_a_name_an_alias_or_a_glob_selects_passes(text: str, name: str, expected: bool) -> None:
    assert selects(text, name) is expected


@pytest.mark.parametrize(
    ("text", "at", "expected"),
    [
        ("fold_constant:2", place(2), True),
        ("fold_constant:2", place(1), False),
        ("cleanup/fold_constant", place(1, "cleanup"), True),
        ("cleanup/fold_constant", place(1, "outer", "cleanup", "inner"), True),
        ("outer/cleanup/fold_constant", place(1, "outer", "cleanup"), True),
        ("outer/cleanup/fold_constant", place(1, "cleanup", "outer"), False),
        ("c*/fold_constant", place(1, "cleanup"), True),
        ("cleanup/fold_constant", place(1), False),
        ("cleanup/fold_constant:2", place(1, "cleanup"), False),
        ("cleanup/fold_constant:2", place(2, "cleanup"), True),
        ("outer/cleanup/fold_constant", place(1, "outer", "middle", "cleanup"), False),
        ("outer/cleanup/fold_constant", place(1, "first", "outer", "cleanup"), True),
        ("outer/cleanup/fold_constant", place(1, "cleanup"), False),
        ("fold_constant:0", place(2), True),
        (" fold_constant ", place(1), True),
    ],
)
def test_an_occurrence_and_a_group_narrow_it(text: str, at: Place, expected: bool) -> None:
    assert selects(text, at=at) is expected


def test_a_glob_does_not_select_a_pipeline() -> None:
    pipeline = Sequential(["fold_constant"], name="fuse_all")
    assert not entry("fuse_*").selects(pipeline, place())


def test_a_pass_with_options_selects_itself_alone() -> None:
    plain, special = get_pass("fold_constant"), get_pass("fold_constant", max_growth="1KB")
    assert entry(plain).selects(special, place())
    assert entry(special).selects(special, place())
    assert not entry(special).selects(plain, place())
    assert entry(plain).key != entry(special).key


@pytest.mark.parametrize(
    ("given", "because"),
    [
        ("fold_constant", "takes a list of passes, not a string"),
        (get_pass("fold_constant"), "takes a list of passes, not"),
        (3, "takes a list of passes, not 3"),
        (Sequential(["fold_constant"]), "takes a list of passes, not"),
        ([3], "takes names and passes, not 3"),
        (["fold_constant{max_growth=1KB}"], "has options; expected the name 'fold_constant'"),
        (["a/b/:x"], "is no entry; expected a name or glob"),
        (["life:none"], "expected life:"),
        (["infer_shapes@/x"], "has a scope, but infer_shapes is a module pass"),
    ],
)
def test_what_is_no_entry_is_an_error(given: Iterable[str], because: str) -> None:
    with pytest.raises(UsageError, match=because):
        entries_of(given, "required", SITE)


@pytest.mark.parametrize("text", ["fold_constnat", "nothing_*", "no_such_group"])
def test_an_unknown_name_is_an_error(text: str) -> None:
    with pytest.raises(PassNotFoundError):
        entry(text)


def test_a_scope_is_for_passes_over_nodes() -> None:
    with pytest.raises(UsageError, match="only rewrite and function passes can be bound"):
        entry("infer_shapes@'/encoder/**'")


def test_one_context_cannot_require_and_disable_the_same() -> None:
    one, other, glob = entry("fold_constant"), entry("FoldConstants"), entry("fold_*")
    with pytest.raises(UsageError, match="both mean fold_constant"):
        check_disjoint([one], [other])
    check_disjoint([one], [glob])
    check_disjoint([entry("fold_constant:2")], [one])


def test_an_entry_says_where_it_was_set() -> None:
    assert str(entry("fold_constant")) == "'fold_constant', set at file.py:3"
    assert str(Site("the command line", 0)) == "the command line"
    assert caller().file == __file__


def test_a_module_with_a_site_name_is_where_it_was_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), SITE_NAME, "the command line")
    assert caller() == Site("the command line", 0)


def test_a_registered_pass_is_found() -> None:
    with registered(fuse_relu):
        assert entry("fuse_relu").selects(fuse_relu, place())


def test_an_option_in_a_name_is_an_edit_of_a_required_pass_only() -> None:
    text = "fold_constant{max_growth=1KB}"
    with pytest.raises(UsageError, match="and the options by edits=") as caught:
        entries_of([text], "required", SITE)
    assert 'edits=["set fold_constant{max_growth=1KB}"]' in str(caught.value)
    with pytest.raises(
        UsageError, match="has options; expected the name 'fold_constant'"
    ) as caught:
        entries_of([text], "disabled", SITE)
    assert "edits" not in str(caught.value)


def test_quotes_around_a_scope_are_no_part_of_it() -> None:
    plain = entry("fuse_gelu@/encoder/**")
    for text in ("fuse_gelu@'/encoder/**'", 'fuse_gelu@"/encoder/**"', "fuse_gelu@ /encoder/** "):
        assert entry(text).scope == plain.scope, text
    assert entry("fuse_gelu").scope is None


def test_entries_that_select_the_same_have_one_key() -> None:
    assert entry("fold_constant").key == entry("FoldConstants").key
    keys = [
        entry(text).key
        for text in (
            "fold_constant",
            "fold_constant:2",
            "a/fold_constant",
            "fold_*",
            "fuse_gelu@'/x'",
        )
    ]
    assert len(set(map(repr, keys))) == 5
    assert entry("fold_*").names == frozenset()
    assert entry("fold_constant").pattern == ""


def test_a_group_is_an_entry_once_its_pipeline_is_made() -> None:
    with pytest.raises(PassNotFoundError) as caught:
        entry("not_made_yet")
    assert any("a group 'not_made_yet' is known once" in note for note in caught.value.__notes__)
    pipeline = Sequential(["fold_constant"], name="made_here")
    assert entry("made_here").selects(pipeline, place())
    assert entry(pipeline).exact == ""
    with pytest.raises(UsageError, match="has a scope, but made_here is a group"):
        entry("made_here@'/x'")
    anonymous = Sequential(["fold_constant"])
    assert entry(anonymous).exact == str(anonymous)


def test_a_site_outside_the_folder_has_its_whole_path() -> None:
    assert str(Site("/elsewhere/file.py", 3)) == "/elsewhere/file.py:3"


def test_quotes_are_a_pair() -> None:
    for text, expected in (
        ("'a'", "a"), ('"a"', "a"), (" 'a' ", "a"), ("'", "'"), ("''", ""), ("'a\"", "'a\""),
        ("aba", "aba"), ("'a", "'a"), ("", ""),
    ):  # fmt: skip
        assert _unquoted(text) == expected, text


def test_only_a_bare_name_may_be_a_group_that_is_not_made_yet() -> None:
    with pytest.raises(PassNotFoundError) as caught:
        entry("some/not_made_yet")
    assert not hasattr(caught.value, "__notes__")


def test_a_line_of_the_package_itself_is_inside() -> None:
    there: dict[str, object] = {"__name__": "tiered", "caller": caller}
    exec("def asked(): return caller()", there)
    assert there["asked"]().file == __file__  # type: ignore[operator]  # it was defined
