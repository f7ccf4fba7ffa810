"""Amounts as people read them: with a noun, in bytes with a unit, differences with a share."""

from __future__ import annotations


def counted(count: int, what: str, plural: str = "") -> str:
    """Return a number with its noun: 1 node, 2,000 nodes."""
    return f"{count:,} {what if count == 1 else plural or f'{what}s'}"


def size(count: int) -> str:
    """Return a number of bytes with its unit, in powers of 1024: 1.4 MiB."""
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(amount) < 1024:
            return f"{count} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def change(before: int, after: int) -> str:
    """Return a difference with its sign and share; an empty string if there is none.

    A share below 1 % has a digit more, so that no difference is shown as 0 %.
    """
    if before == after:
        return ""
    share = (after - before) / before if before else 0.0
    if abs(share) < 0.0005:
        return f"{after - before:+,}"
    return f"{after - before:+,} ({share:+.{0 if abs(share) >= 0.01 else 1}%})"
