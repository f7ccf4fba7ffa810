"""Which words and numbers may be a dim in an option."""

from tiered.graph.core.dim_names import is_dim, is_dim_name


def test_names_of_dims_are_words_that_are_no_constants() -> None:
    for text, expected in {
        "batch": True, "N": True, "seq.len": True, "seq-len": True, "_x2": True, "größe": True,
        "2": False, "2x": False, "": False, "a b": False, "a.": False, "-a": False, "a+b": False,
        "None": False, "null": False, "NaN": False, "inf": False, "True": False, "false": False,
    }.items():  # fmt: skip
        assert is_dim_name(text) is expected, text


def test_a_dim_is_a_name_or_an_integer_other_than_0() -> None:
    for dim, expected in (
        ("batch", True), ("true", False), (1, True), (-1, True), (7, True), (0, False),
        (True, False), (2.0, False), (None, False),
    ):  # fmt: skip
        assert is_dim(dim) is expected, dim
