"""Shape rules are in one registry, each for an operator that exists."""

import ast

import pytest
from onnx import defs

from tests.house.tree import PACKAGE, parse
from tiered.graph.shape_inference import rules
from tiered.graph.shape_inference.rules.shape_rule import TYPES, VALUES
from tiered.rewriter.idioms.qonnx.qonnx_bodies import DEFAULTS, DOMAINS

FOLDER = PACKAGE / "graph" / "shape_inference" / "rules"
MODULES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem[0] != "_")


@pytest.mark.parametrize("module", MODULES)
def test_each_module_of_rules_is_loaded_with_the_others(module: str) -> None:
    assert hasattr(rules, module)


@pytest.mark.parametrize("module", MODULES)
def test_no_operator_has_two_rules_of_one_kind(module: str) -> None:
    decorators = [
        name.value
        for function in ast.walk(parse(FOLDER / f"{module}.py"))
        if isinstance(function, ast.FunctionDef)
        for call in function.decorator_list
        if isinstance(call, ast.Call)
        for name in call.args
        if isinstance(name, ast.Constant)
    ]
    assert len(decorators) == len(set(decorators))


def test_each_rule_is_for_an_operator() -> None:
    known = {schema.name for schema in defs.get_all_schemas() if schema.domain == ""}
    for domain, op_type in [*TYPES.rules, *VALUES.rules]:
        assert domain != "" or op_type in known
        assert domain not in DOMAINS or op_type in DEFAULTS
        assert domain in ("", "com.microsoft", *DOMAINS)
