"""The tests of a pass hold its level and its promise, too."""

from tests.pass_levels import declared_as_listed

__all__ = ["declared_as_listed"]
