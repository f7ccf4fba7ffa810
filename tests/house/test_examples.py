"""Each pass that changes models has an example for its page."""

from docs.site.examples import example_of
from docs.site.pass_pages import own_passes


def test_each_pass_that_changes_models_has_an_example() -> None:
    """Add one to `tests/test_golden_files.py` if no test of the pass calls `assert_rewrites`."""
    infos = [info for info in own_passes() if not info.analysis and info.kind != "pipeline"]
    assert infos
    assert [info.name for info in infos if example_of(info) is None] == []
