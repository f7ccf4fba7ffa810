"""The view beside networkx, onnx-ir and a plain dict: `python -m benchmarks.view --help`.

All in one run on one synthetic model: nodes with two inputs, one a few nodes back. Rounds take
turns, the garbage collector is paused, and medians are reported: of processor time for all that
takes long, so that other load does not count. Memory is that of a process of its own: the resident
set after opening, less that before it, when the process holds the ModelProto.
"""

import gc
import importlib.util
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import cyclopts
import networkx as nx
import onnx
from onnx import helper
from rich.console import Console
from rich.table import Table

from tiered.graph import Graph, Model
from tiered.support.loading import paused_collector

BACK = 7
STATM = Path("/proc/self/statm")

_console = Console()


def synthetic(nodes: int) -> onnx.ModelProto:
    """Return a model of small nodes with names as exporters give them."""
    made = [
        helper.make_node(
            "Add",
            [_name(at), _name(max(0, at - BACK))],
            [_name(at + 1)],
            name=f"/encoder/layer.{at % 24}/Add_{at}",
        )
        for at in range(nodes)
    ]
    ends = [helper.make_tensor_value_info(_name(at), 1, [2]) for at in (0, nodes)]
    graph = helper.make_graph(made, "synthetic", ends[:1], ends[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def _name(at: int) -> str:
    return f"/encoder/layer/Add_{at}_output_0"


# --- opening --------------------------------------------------------------------------------------


def open_tiered(proto: onnx.ModelProto) -> Model:
    return Model.from_proto(proto)


def open_tiered_with_dag(proto: onnx.ModelProto) -> Model:
    model = Model.from_proto(proto)
    assert model.main.dag is not None
    return model


def open_dict(proto: onnx.ModelProto) -> dict[str, Any]:
    """Return the least that anybody needs: who makes a value, and who reads it."""
    producers: dict[str, onnx.NodeProto] = {}
    users: dict[str, list[tuple[onnx.NodeProto, int]]] = {}
    for node in proto.graph.node:
        for name in node.output:
            producers[name] = node
        for index, name in enumerate(node.input):
            users.setdefault(name, []).append((node, index))
    return {"producers": producers, "users": users}


def open_onnx_ir(proto: onnx.ModelProto) -> object:
    import onnx_ir

    return onnx_ir.serde.deserialize_model(proto)


def networkx_of(graph: Graph) -> Callable[[onnx.ModelProto], object]:
    """Return what makes the DiGraph of a graph from lists of nodes and edges: networkx alone."""
    nodes = list(graph.dag)
    edges = [(tail, head, list(slots)) for tail, head, slots in graph.dag.edges(data="slots")]

    def build(_: onnx.ModelProto) -> object:
        dag: nx.DiGraph[Any] = nx.DiGraph()
        dag.add_nodes_from(nodes)
        dag.add_edges_from((tail, head, {"slots": slots}) for tail, head, slots in edges)
        return dag

    return build


OPENERS: dict[str, Callable[[onnx.ModelProto], object]] = {
    "tiered": open_tiered,
    "tiered + dag": open_tiered_with_dag,
    "plain dict": open_dict,
}
if importlib.util.find_spec("onnx_ir"):
    OPENERS["onnx-ir"] = open_onnx_ir


def opening(proto: onnx.ModelProto, rounds: int) -> dict[str, float]:
    """Return the median seconds that each one needs to open a model."""
    openers = {**OPENERS, "networkx": networkx_of(Model.from_proto(proto).main)}
    times: dict[str, list[float]] = {name: [] for name in openers}
    for _ in range(rounds):
        for name, opener in openers.items():
            gc.collect()
            started = time.process_time()
            opened = opener(proto)
            times[name].append(time.process_time() - started)
            del opened
    return {name: statistics.median(found) for name, found in times.items()}


# --- editing --------------------------------------------------------------------------------------


def editing(model: Model, edits: int) -> tuple[float, float]:
    """Return the median seconds of one edit, and the mean ones of its rollback, networkx included.

    Each edit makes an input read another value and back again later.
    """
    graph, times = model.main, []
    nodes, first = graph.nodes, graph.inputs[0]
    assert graph.dag is not None
    step = max(1, len(nodes) // edits)
    mark = model.mark()
    for node in nodes[::step][:edits]:
        started = time.perf_counter()
        graph.set_input(node, 1, first)
        times.append(time.perf_counter() - started)
    count = len(model.journal) - mark
    started = time.process_time()
    model.undo_to(mark)
    rollback = (time.process_time() - started) / max(1, count)
    return statistics.median(times), rollback


def many_users(nodes: int) -> Model:
    """Return a model in which one value has all the users."""
    made = [helper.make_node("Add", ["a", "a"], [f"b{at}"], name=f"n{at}") for at in range(nodes)]
    made.insert(0, helper.make_node("Relu", ["x"], ["a"]))
    info = helper.make_tensor_value_info("x", 1, [2])
    outs = [helper.make_tensor_value_info(f"b{nodes - 1}", 1, [2])]
    graph = helper.make_graph(made, "many", [info], outs)
    opsets = [helper.make_opsetid("", 21)]
    return Model.from_proto(helper.make_model(graph, opset_imports=opsets, ir_version=10))


def moving_users(model: Model, edits: int) -> float:
    """Return the median seconds of taking one user from a value that has very many."""
    graph, times = model.main, []
    assert graph.dag is not None
    for node in graph.nodes[: -edits - 1 : -1]:
        started = time.perf_counter()
        graph.set_input(node, 0, graph.inputs[0])
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def sorting(model: Model, rounds: int) -> tuple[float, float]:
    """Return the median seconds of a topological order that is not kept: ours, and networkx's."""
    ours, theirs = [], []
    dag = model.main.dag
    for _ in range(rounds):
        model.main._order = None
        started = time.process_time()
        model.main.topological_order()
        ours.append(time.process_time() - started)
        started = time.process_time()
        assert list(nx.topological_sort(dag))
        theirs.append(time.process_time() - started)
    return statistics.median(ours), statistics.median(theirs)


# --- memory ---------------------------------------------------------------------------------------


def memory(name: str, nodes: int) -> float:
    """Return the bytes per node that a process needs for an opened model above its proto."""
    script = (
        "from benchmarks import view; import gc; gc.disable(); "
        f"view.OPENERS[{name!r}](view.synthetic(10)); proto = view.synthetic({nodes}); "
        f"before = view.resident(); opened = view.OPENERS[{name!r}](proto); "
        "print(view.resident() - before)"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    return int(done.stdout) / nodes


def resident() -> int:
    """Return the resident set of this process in bytes."""
    return int(STATM.read_text().split()[1]) * 4096


def main(
    *,
    nodes: Annotated[int, cyclopts.Parameter(help="of the model")] = 50_000,
    rounds: Annotated[int, cyclopts.Parameter(help="of each measurement")] = 7,
) -> None:
    """Measure the view against networkx alone, a plain dict, and onnx-ir where it is installed."""
    with paused_collector():
        _measure(nodes, rounds)


def _measure(nodes: int, rounds: int) -> None:
    proto = synthetic(nodes)
    opened = opening(proto, rounds)
    base = opened["networkx"]
    table = Table("open", "s", "us a node", "x networkx", "bytes a node", title=f"{nodes} nodes")
    for name, seconds in opened.items():
        has_memory = name in OPENERS and STATM.exists()
        table.add_row(
            name,
            f"{seconds:.3f}",
            f"{1e6 * seconds / nodes:.2f}",
            f"{seconds / base:.2f}",
            f"{memory(name, nodes):.0f}" if has_memory else "-",
        )
    _console.print(table)

    model, small = Model.from_proto(proto), Model.from_proto(synthetic(max(20, nodes // 50)))
    edits = min(2000, nodes // 10)
    table = Table("edit, networkx included", "us, median", "rollback, us an edit")
    for what, edited in ((f"{len(small.main)} nodes", small), (f"{nodes} nodes", model)):
        edit, rollback = editing(edited, edits)
        table.add_row(what, f"{1e6 * edit:.2f}", f"{1e6 * rollback:.2f}")
    for users in (10, max(20, 2 * nodes // 5)):
        edit = moving_users(many_users(users), min(edits, users))
        table.add_row(f"of a value with {2 * users} users", f"{1e6 * edit:.2f}", "-")
    _console.print(table)

    ours, theirs = sorting(model, rounds)
    _console.print(f"topological order: {ours:.3f} s; networkx's: {theirs:.3f} s")


if __name__ == "__main__":
    cyclopts.run(main)
