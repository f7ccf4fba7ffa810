"""The entry of a pass in the index: what is known of it without loading what runs passes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tiered.passes.interface.pass_info import PassInfo

if TYPE_CHECKING:
    from tiered.passes.kinds.body import BodyPass


class Indexed(NamedTuple):
    """The entry of a pass in the index.

    Attributes:
        folder: the folder of its file within the package: "function_passes/conv".
        info: its info, without the path of the file.
        operators: alternatives of required operators, as in `Body.operators`, each as
            "Add com.microsoft::Gelu"; None: every model may have work.
    """

    folder: str
    info: PassInfo
    operators: tuple[str, ...] | None

    def made(self) -> BodyPass:
        """Return the pass; its file is loaded at its first run."""
        from tiered.passes.index.lazy import later_pass

        return later_pass(*self)
