"""Skip: why a rewrite did not fire. Not an error; it becomes a remark."""

from __future__ import annotations


class Skip:
    """A reason, formatted only if it is read: `Skip("axis {} is not the last", axis)`."""

    __slots__ = ("args", "reason")

    def __init__(self, reason: str, *args: object) -> None:
        self.reason = reason
        self.args = args

    def __str__(self) -> str:
        return self.reason.format(*self.args) if self.args else self.reason

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


class Unable(Skip):
    """A reason why a pass cannot do what it is asked for, on any node.

    It is an error (a `TargetError`, exit code 4) if the pass was asked for by name. A pass that has
    nothing left to do returns a `Skip`.

    Args:
        reason, args: as of `Skip`.
        despite_edits: it is an error too if the pass changed something: it came nearer, and did
            not reach what it is asked for.
    """

    __slots__ = ("despite_edits",)

    def __init__(self, reason: str, *args: object, despite_edits: bool = False) -> None:
        super().__init__(reason, *args)
        self.despite_edits = despite_edits
