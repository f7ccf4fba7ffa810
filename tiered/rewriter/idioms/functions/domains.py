"""Domains of local functions that a user names."""

from collections.abc import Iterator, Sequence

from tiered.graph import Model
from tiered.support.errors import did_you_mean


def unmet_domains(model: Model, named: Sequence[str]) -> Iterator[str]:
    """Yield, in words, each domain that is named and has no function."""
    there = {function.domain for function in model.functions}
    for domain in named:
        if domain not in there:
            known = f"; it has {', '.join(sorted(there))}" if there else ""
            hint = did_you_mean(domain, there) or known
            yield f"the model has no function of the domain {domain!r}{hint}"
