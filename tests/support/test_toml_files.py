"""TOML files are read, or are an error of the caller's kind."""

from pathlib import Path

import pytest

from tiered.support.errors import ConfigError
from tiered.support.toml_files import read_toml


def test_a_file_that_is_no_toml_is_an_error_of_the_given_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.toml"
    path.write_text("a = 1\n", encoding="utf-8")
    assert read_toml(path, ConfigError) == {"a": 1}
    path.write_text("a = ", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"a\.toml is not TOML: Invalid value"):
        read_toml(path, ConfigError)
    path.unlink()
    with pytest.raises(ConfigError, match=r"^cannot read .*a\.toml: No such file or directory$"):
        read_toml(path, ConfigError)

    def fails(*_: object) -> None:
        raise OSError("a reason without a number")

    monkeypatch.setattr("builtins.open", fails)
    with pytest.raises(ConfigError, match=r"a\.toml: a reason without a number$"):
        read_toml(path, ConfigError)
