import pytest

from tiered.cli.pass_names import split_names, split_required
from tiered.support.errors import UsageError


@pytest.mark.parametrize(
    ("entries", "names"),
    [
        ((), ()),
        (("a",), ("a",)),
        (("a,b", "c"), ("a", "b", "c")),
        ((" a , fuse_* ",), ("a", "fuse_*")),
        (("fold_constant{growth=1%,limit=3},b",), ("fold_constant{growth=1%,limit=3}", "b")),
        (("fuse_gelu@'/a,b/**',c",), ("fuse_gelu@'/a,b/**'", "c")),
    ],
)
def test_commas_separate_names_but_not_inside_brackets_and_quotes(
    entries: tuple[str, ...], names: tuple[str, ...]
) -> None:
    assert split_names(entries, "--disable") == names


@pytest.mark.parametrize(
    ("entry", "name", "edit"),
    [
        ("schedule{dims=[N=2,M=3]}", "schedule", "set schedule{dims=[N=2,M=3]}"),
        ("fold_constant:2{max_growth=1%}", "fold_constant:2", "set fold_constant:2{max_growth=1%}"),
        ("fuse_gelu{a=1}@'/b/**'", "fuse_gelu@'/b/**'", "set fuse_gelu{a=1}"),
        ("fuse_gelu@'/{b}/**'", "fuse_gelu@'/{b}/**'", None),
        ("schedule", "schedule", None),
    ],
)
def test_options_of_required_passes_are_edits(entry: str, name: str, edit: str | None) -> None:
    found = split_required([entry, "last"])
    assert found.names == (name, "last")
    assert found.edits == (() if edit is None else (edit,))


@pytest.mark.parametrize("entry", ["", "a,", ",", "a,,b"])
def test_an_empty_name_is_a_usage_error_that_names_the_option(entry: str) -> None:
    with pytest.raises(UsageError, match="--require: an empty pass name"):
        split_names([entry], "--require")
