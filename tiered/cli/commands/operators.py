"""List the operators that tiered knows, with what is not known of each, or describe one.

Examples:
    tiered operators Gather
    tiered operators --missing range

`--json` prints an array of {name, domain, aspects, missing}; for NAME one object with the rule of
each aspect as "module:line" or null, the traits, the opsets in which its form or meaning changes,
and the backends that have it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Console
from rich.text import Text

from tiered.cli.line.candidates import complete_operator
from tiered.cli.line.declaration import Flags
from tiered.cli.load_passes import load_passes
from tiered.cli.output.tables import Cell, print_table
from tiered.cli.output.terminal import print_json, printable, results
from tiered.cli.shared_options import AsJson, Load
from tiered.support.amounts import counted
from tiered.support.errors import BackendError, UsageError, did_you_mean
from tiered.support.operator_name import operator_name

if TYPE_CHECKING:
    from tiered.graph.opset.aspect import Key


def operators(
    name: Annotated[str | None, Flags(completes=complete_operator)] = None,
    /,
    *,
    missing: str | None = None,
    load: Load = (),
    as_json: AsJson = False,
) -> None:
    """Print a table of operators, or describe one.

    Args:
        name: An operator: Gather, com.microsoft::Gelu.
        missing: Only operators without a rule of this aspect: range, gradient, layout.
        load: As for `tiered optimize`: Python files or modules, here with rules of your own.

    Raises:
        UsageError: there is no such operator or aspect, or both are named.
    """
    load_passes(load)
    if name is not None and missing is not None:
        raise UsageError("`tiered operators` takes an operator or --missing, not both")
    if name is not None:
        described = _described(_key_of(name))
        if as_json:
            print_json(described)
        else:
            _print_one(results(), described)
        return
    summaries = _summaries(missing)
    if as_json:
        print_json(summaries)
    else:
        _print_all(results(), summaries, missing)


def _summaries(missing: str | None) -> list[dict[str, Any]]:
    """Return what is known of each operator; only of those without a rule of an aspect."""
    from tiered.analysis.aspects import ASPECTS, holes, known_operators, rules_of

    keys = known_operators() if missing is None else holes(missing)
    tables = {each: rules_of(each) for each in ASPECTS}
    open_ones = [each for each in ASPECTS if ASPECTS[each].is_open]
    return [
        {
            "name": op_type,
            "domain": domain,
            "aspects": [each for each in ASPECTS if (domain, op_type) in tables[each]],
            "missing": [each for each in open_ones if (domain, op_type) not in tables[each]],
        }
        for domain, op_type in keys
    ]


def _print_all(
    console: Console, summaries: Sequence[Mapping[str, Any]], missing: str | None
) -> None:

    rows: list[tuple[Cell, ...]] = [
        (
            operator_name(each["domain"], each["name"]),
            len(each["aspects"]),
            "all" if not each["missing"] else ", ".join(each["missing"]),
        )
        for each in summaries
    ]
    title = counted(len(rows), "operator") + (f" without a rule of {missing}" if missing else "")
    print_table(console, title, ("operator", "rules", "missing"), rows)


def _key_of(name: str) -> Key:
    """Return the domain and the name of an operator.

    Raises:
        UsageError: nothing is known of it.
    """
    from tiered.analysis.aspects import known_operators

    known = {operator_name(*key): key for key in known_operators()}
    wanted = name.removeprefix("ai.onnx::")
    if wanted not in known:
        raise UsageError(f"nothing is known of an operator {name!r}{did_you_mean(wanted, known)}")
    return known[wanted]


def _described(key: Key) -> dict[str, Any]:
    from tiered.analysis.aspects import ASPECTS, place_of, rules_of

    domain, op_type = key
    rules = {name: rules_of(name).get(key) for name in ASPECTS}
    return {
        "name": op_type,
        "domain": domain,
        "aspects": {name: None if rule is None else place_of(rule) for name, rule in rules.items()},
        "missing": [name for name in ASPECTS if ASPECTS[name].is_open and rules[name] is None],
        "traits": [] if domain else _traits_of(op_type),
        "form_changes": [] if domain else _changes_of(op_type),
        "lowered": _is_lowered(key),
        "legalized_by": _legalizations_of(key),
        "backends": _backends_with(key),
    }


def _traits_of(op_type: str) -> list[str]:
    """Return the names of the sets of `op_traits` that have an operator."""
    from tiered.graph.queries import op_traits

    return sorted(
        name.lower().replace("_", " ")
        for name, members in vars(op_traits).items()
        if name.isupper() and op_type in members
    )


def _changes_of(op_type: str) -> list[int]:
    """Return the opsets in which the form or the meaning of an operator changes."""
    from tiered.graph.opset.adapters import CHANGES
    from tiered.graph.opset.meanings import INSTEAD, MEANINGS

    tables = (CHANGES, MEANINGS, INSTEAD)
    return sorted({change.since for table in tables for change in table.get(op_type, ())})


def _is_lowered(key: Key) -> bool:
    from tiered.graph.edits.lowerings import LOWERINGS

    return not key[0] and key[1] in LOWERINGS


def _legalizations_of(key: Key) -> list[str]:
    from tiered.passes.interface.registry import registry

    wanted = operator_name(*key)
    infos = {name: registry.named(name).info for name in registry.legalizations()}
    return sorted(name for name, info in infos.items() if wanted in info.touches)


def _backends_with(key: Key) -> list[str]:
    """Return the backends that list an operator, or take all of ONNX's own."""
    from tiered.targets import backend_names, get_backend

    found = []
    for name in backend_names():
        try:
            backend = get_backend(name)
        except BackendError:
            continue  # `tiered backends` says what is wrong with it
        rules = backend.operators.get(key)
        if bool(rules) if rules is not None else backend.unlisted == "standard" and not key[0]:
            found.append(name)
    return found


def _print_one(console: Console, described: Mapping[str, Any]) -> None:
    from tiered.analysis.aspects import ASPECTS

    name = operator_name(described["domain"], described["name"])
    console.print(Text(name, style="bold"))
    facts = {
        "traits": described["traits"],
        "its form changes in the opsets": [str(since) for since in described["form_changes"]],
        "legalized by": described["legalized_by"],
        "backends": described["backends"],
    }
    for label, found in facts.items():
        if found:
            console.print(printable(f"  {label}: {', '.join(found)}"))
    if described["lowered"]:
        console.print("  other nodes take its place where an opset lacks it")
    rows = [
        (aspect, place.says, described["aspects"][aspect] or f"none: {place.without}")
        for aspect, place in ASPECTS.items()
    ]
    print_table(console, "Aspects", ("aspect", "what it says", "rule"), rows)
