"""The candidates for completion: names of passes, backends, providers and operators."""

from __future__ import annotations

from collections.abc import Iterable

Candidates = list[tuple[str, str]]
"""Values with their descriptions."""


def named(names: Iterable[str]) -> Candidates:
    """Return names as candidates without a description."""
    return [(name, "") for name in names]


def complete_pass(word: str) -> Candidates:
    """Return the names of passes, each with its law."""
    from tiered.passes.interface.registry import registry

    return [(name, registry.named(name).info.law) for name in registry.names()]


def complete_passes(word: str) -> Candidates:
    """Return the completions of a comma-separated list of passes."""
    typed, comma, _ = word.rpartition(",")
    return [(f"{typed}{comma}{name}", law) for name, law in complete_pass(word)]


def complete_backend(word: str) -> Candidates:
    """Return the names of backends."""
    from tiered.targets import backend_names

    return named(backend_names())


def complete_provider(word: str) -> Candidates:
    """Return the names of the installed execution providers."""
    import onnxruntime

    return named(onnxruntime.get_available_providers())


def complete_operator(word: str) -> Candidates:
    """Return the names of operators that passes act on."""
    from tiered.passes.interface.registry import registry

    infos = [registry.named(name).info for name in registry.names()]
    names = {name for info in infos for name in info.touches}
    return named(sorted(names - {"*", "elementwise"}))
