"""Instruments by TVM's names."""

from __future__ import annotations

from collections.abc import Iterable

from tiered.pipeline.instruments import Dump, PrintIR, Timing


class PassInstrument:
    """A base class for instruments; any object with some of the hooks is an instrument."""


def pass_instrument(pi_cls: type) -> type:
    """Return the class: its instances are instruments already."""
    return pi_cls


PassTimingInstrument = Timing


def PassPrintingInstrument(
    print_before_pass_names: Iterable[str], print_after_pass_names: Iterable[str]
) -> PrintIR:
    """Return a `PrintIR` for passes of these names."""
    return PrintIR(print_before_pass_names, print_after_pass_names, only_changed=False)


def PrintBeforeAll() -> PrintIR:
    """Return a `PrintIR` before all passes."""
    return PrintIR(before=True, after=False)


def PrintAfterAll() -> PrintIR:
    """Return a `PrintIR` after all passes."""
    return PrintIR(only_changed=False)


def DumpIR(dump_dir: str) -> Dump:
    """Return a `Dump` of every pass into a folder."""
    return Dump(dump_dir, every=True)
