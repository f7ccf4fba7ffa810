"""What is not known of the operators of ONNX is listed, and the list only gets shorter."""

from pathlib import Path

from onnx import defs

from tiered.analysis.aspects import ASPECTS, holes

LIST = Path(__file__).with_name("operator_holes.txt")
"""A line an operator: its name, and the aspects without a rule. Where an operator gets a rule, the
word goes; where ONNX gets an operator, give it rules, or a line here."""


def _found() -> dict[str, list[str]]:
    """Return the aspects without a rule, by operator of ONNX's own domain."""
    known = {schema.name for schema in defs.get_all_schemas() if not schema.domain}
    found: dict[str, list[str]] = {}
    for name, place in ASPECTS.items():
        for domain, op_type in holes(name) if place.is_open else ():
            if not domain and op_type in known:
                found.setdefault(op_type, []).append(name)
    return found


def _listed() -> dict[str, list[str]]:
    lines = LIST.read_text(encoding="utf-8").splitlines()
    return {name: aspects.split() for name, _, aspects in (line.partition(": ") for line in lines)}


def test_the_list_has_every_hole_and_no_other() -> None:
    known = {schema.name for schema in defs.get_all_schemas() if not schema.domain}
    listed = {name: aspects for name, aspects in _listed().items() if name in known}
    assert _found() == listed


def test_the_list_is_sorted() -> None:
    assert list(_listed()) == sorted(_listed())
