"""Shape rules are in one registry, each for an operator that exists."""

import ast

from onnx import defs

from tests.house.tree import PACKAGE, parse
from tiered.graph.shape_inference import rules
from tiered.graph.shape_inference.rules.shape_rule import TYPES, VALUES
from tiered.rewriter.idioms.qonnx_bodies import DEFAULTS, DOMAINS

FOLDER = PACKAGE / "graph" / "shape_inference" / "rules"
MODULES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem[0] != "_")


def test_each_module_of_rules_is_loaded_with_the_others() -> None:
    assert [module for module in MODULES if not hasattr(rules, module)] == []


def test_no_operator_has_two_rules_of_one_kind() -> None:
    twice = {
        module: {name for name in found if found.count(name) > 1}
        for module in MODULES
        if len(found := _registered(module)) > len(set(found))
    }
    assert twice == {}


def _registered(module: str) -> list[object]:
    """Return the operators that the decorators of a module name."""
    return [
        name.value
        for function in ast.walk(parse(FOLDER / f"{module}.py"))
        if isinstance(function, ast.FunctionDef)
        for call in function.decorator_list
        if isinstance(call, ast.Call)
        for name in call.args
        if isinstance(name, ast.Constant)
    ]


def test_each_rule_is_for_an_operator() -> None:
    known = {schema.name for schema in defs.get_all_schemas() if schema.domain == ""}
    for domain, op_type in [*TYPES.rules, *VALUES.rules]:
        assert domain != "" or op_type in known
        assert domain not in DOMAINS or op_type in DEFAULTS
        assert domain in ("", "com.microsoft", *DOMAINS)
