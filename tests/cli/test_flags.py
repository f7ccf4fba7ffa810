import pytest

from tiered.cli.flags import split_names
from tiered.errors import UsageError


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


@pytest.mark.parametrize("entry", ["", "a,", ",", "a,,b"])
def test_an_empty_name_is_a_usage_error_that_names_the_option(entry: str) -> None:
    with pytest.raises(UsageError, match="--require: an empty pass name"):
        split_names([entry], "--require")
