"""Names of settings of other tools lead to the names here."""

from tiered.support.setting_names import unknown_setting


def test_an_unknown_setting_leads_to_the_right_name() -> None:
    for name, known, said in (
        ("level", ["opt_level", "dims"], "f has no setting 'level'; here it is called 'opt_level'"
                                         " (it has opt_level, dims)"),
        ("level", ["dims"], "f has no setting 'level' (it has dims)"),
        ("dimms", ["dims"], "f has no setting 'dimms'; did you mean 'dims'? (it has dims)"),
    ):  # fmt: skip
        assert str(unknown_setting("f", name, known)) == said
