"""Config options: each has a type, a default and one line, and wrong ones are named."""

import pytest

from tiered.support.config_options import checked_config, config_options, register_config_option
from tiered.support.errors import ConfigError


def test_options_are_sorted_and_have_a_line_of_help() -> None:
    names = list(config_options())
    assert names == sorted(names)
    assert all("." in name and option.doc for name, option in config_options().items())


def test_values_that_fit_are_kept_and_no_others_added() -> None:
    given = {"remarks.examples": 3, "verify.default_session": False, "memory.max": None}
    assert checked_config(given) == given


def test_an_unknown_name_is_an_error_with_the_closest_one() -> None:
    with pytest.raises(ConfigError, match=r"did you mean 'remarks\.examples'\?"):
        checked_config({"remarks.example": 3})


@pytest.mark.parametrize("value", ["many", 1.5, None])
def test_a_value_of_another_type_is_an_error(value: object) -> None:
    with pytest.raises(ConfigError, match=r"remarks\.examples"):
        checked_config({"remarks.examples": value})


def test_an_option_may_be_registered_again_only_as_it_is() -> None:
    option = config_options()["remarks.examples"]
    again = register_config_option(option.name, int, option.default, option.doc)
    assert again == option
    with pytest.raises(ConfigError, match="is registered already"):
        register_config_option(option.name, int, option.default + 1, option.doc)
    assert config_options()["remarks.examples"] == option
