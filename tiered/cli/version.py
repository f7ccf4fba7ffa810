"""`tiered --version -v`: versions, the processor, and its 8-bit products, for reports of faults."""

from __future__ import annotations

import platform

from tiered.cli.output.terminal import printable, results
from tiered.support.processor import processor_name


def print_details() -> None:
    """Print what decides the results of a run on this machine, beside the model.

    Raises:
        PackageNotFoundError: a package that tiered works with is not installed as one.
    """
    from tiered.extensions.debug.bundle import versions
    from tiered.runtime.byte_products import WORDS, byte_products

    console = results()
    for name, version in versions().items():
        console.print(printable(f"{name} {version}"), soft_wrap=True)
    console.print(printable(f"processor: {processor()}"), soft_wrap=True)
    console.print(f"8-bit products: {WORDS[byte_products()]}", soft_wrap=True)


def processor() -> str:
    """Return the name of the processor and its instruction set, as far as the system has them."""
    machine = platform.machine()
    name = processor_name()
    return f"{name} ({machine})" if name and name != machine else machine or "unknown"
