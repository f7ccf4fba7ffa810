"""No module imports itself through others; for annotations, only the core nouns of graph/ do."""

from tests.house.import_graph import Import, cycles

CORE_NOUNS = """
    graph.core.gate graph.core.graph graph.core.journal graph.core.marks graph.core.model
    graph.core.node graph.core.operator_calls graph.core.provenance graph.core.topological_order
    graph.core.use_lists graph.core.value graph.edits.declared_types graph.edits.inlining
    graph.edits.interface_edits graph.edits.invalidate graph.edits.nodes graph.edits.operand_edits
    graph.edits.replace graph.edits.surgery graph.edits.transactions graph.edits.unroll
    graph.edits.value_edits
"""
"""Graph, Node, Value, the state of a model, and the edits that are methods of Graph.

They are one concept, the mutable IR. `Graph` names its edits, so that they are methods with types;
the edits name the nouns. Builder, queries and opset adapters are bound to `Graph` and `Node`
in `graph/api.py`. The list may shrink, never grow.
"""


def test_no_module_imports_itself_on_load() -> None:
    assert cycles(Import.ON_LOAD) == []


def test_no_module_imports_itself_at_run_time() -> None:
    assert cycles(Import.ON_LOAD, Import.LAZY) == []


def test_only_core_nouns_name_each_other() -> None:
    assert cycles(*Import) == [sorted(f"tiered.{name}" for name in CORE_NOUNS.split())]
