"""The limit of the memory of a command: --max-memory, and the setting `memory.max`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from tiered.cli.shared_options import Bounded, size_option
from tiered.support.errors import UsageError
from tiered.support.memory_limit import limited


@contextlib.contextmanager
def within(nbytes: int | None, name: str) -> Iterator[None]:
    """Limit the bytes that this process may hold in the block.

    Args:
        nbytes: the limit; None for none, which forgets the peak of an earlier run, too.
        name: what set it, for errors.

    Raises:
        UsageError: no run takes so little.
        MemoryLimitError: the process holds more.
    """
    if nbytes is not None:
        from tiered.runtime.worker.limits import LEAST

        if nbytes < LEAST:
            raise UsageError(f"{name}: {nbytes:,} bytes are too few to run; at least {LEAST:,}")
    with limited(nbytes):
        yield


class MemoryBound(Bounded):
    """The limit of a command that has no settings of a pipeline: it limits the whole command."""

    def around(self) -> contextlib.AbstractContextManager[None]:
        """Return what the command runs in.

        Raises:
            UsageError: the limit is no size.
        """
        if self.max_memory is None:
            return within(None, "--max-memory")
        from tiered.runtime.worker.limits import physical_memory

        nbytes = size_option("--max-memory", self.max_memory, physical_memory())
        return within(nbytes, "--max-memory")
