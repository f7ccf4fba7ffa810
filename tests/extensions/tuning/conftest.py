"""The fixtures of tuning."""

from tests.fake_worker import fake_worker  # noqa: F401 - a fixture
