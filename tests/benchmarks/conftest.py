"""The fixtures of benchmarks that measure latency."""

from tests.fake_worker import fake_worker  # noqa: F401 - a fixture
