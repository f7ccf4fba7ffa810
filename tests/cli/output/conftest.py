import pytest


@pytest.fixture(autouse=True)
def no_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Print as into a pipe, whatever the width of the terminal that the tests run in."""
    monkeypatch.delenv("COLUMNS", raising=False)
