"""The ways to verify: those that can be asked for, and which one each pass took."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from tiered.errors import UsageError, did_you_mean

How = Literal["each", "region", "final", "structure", "off"]


def how_of(given: bool | str | None) -> How:
    """Return the way to verify that was asked for; true stands for each pass.

    Raises:
        UsageError: there is no such way.
    """
    if given is None or isinstance(given, bool):
        return "each" if given else "off"
    if given not in get_args(How):
        raise UsageError(
            f"verify takes {', '.join(get_args(How))}, not {given!r}"
            f"{did_you_mean(given, get_args(How))}"
        )
    return given  # type: ignore[return-value]  # one of the names, as was just checked


@dataclass(frozen=True)
class Way:
    """How one pass was verified.

    Attributes:
        pass_name: the pass; "" of all of them.
        by: "model" (all of it ran), "region" (what changed ran, before and after), "sameness" (the
            pass wrote nothing that is computed) or "nothing" (what changed runs nowhere alone).
        nodes: how many nodes ran, where that were not all.
        inputs: "given", "made", or of a region "recorded" in a run of the model.
    """

    pass_name: str
    by: Literal["model", "region", "sameness", "nothing"]
    nodes: int = 0
    inputs: Literal["", "given", "made", "recorded"] = ""

    def __str__(self) -> str:
        name = self.pass_name or "all passes"
        match self.by:
            case "model":
                return f"{name}: the model ran on {self.inputs} inputs"
            case "region":
                return f"{name}: {self.nodes} nodes ran before and after, on {self.inputs} values"
            case "sameness":
                return f"{name}: nothing that is computed changed"
        return f"{name}: nothing ran"
