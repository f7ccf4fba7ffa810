"""networkx on the view of a model: graph algorithms as they come, on the nodes of the model.

python examples/networkx_algorithms.py [model.onnx]
"""

import sys
from collections import Counter
from pathlib import Path

import networkx as nx

from tiered import Graph, Model, Node

BERT = Path(__file__).parent / "models" / "bert.ts.onnx"


def longest_path(graph: Graph) -> list[Node]:
    """Return the longest chain of nodes: what no number of threads makes shorter."""
    path: list[Node] = nx.dag_longest_path(graph.dag, weight=None)
    return path


def dominators(graph: Graph) -> list[Node]:
    """Return the nodes through which all of the last output goes, the last first."""
    last = graph.outputs[-1].producer
    assert last is not None
    # One source for all inputs, in a copy: the live view is read-only.
    flow = nx.DiGraph(graph.dag)
    flow.add_edges_from(("inputs", node) for node, degree in graph.dag.in_degree() if not degree)
    above = nx.immediate_dominators(flow, "inputs")
    chain = []
    while isinstance(last, Node):
        chain.append(last)
        last = above[last]
    return chain


def cut_nodes(graph: Graph) -> set[Node]:
    """Return the nodes that hold the graph together: natural places to split a model."""
    return set(nx.articulation_points(graph.dag.to_undirected(as_view=True)))


def communities(graph: Graph) -> list[set[Node]]:
    """Return groups of nodes that are wired more to each other than to the rest."""
    found: list[set[Node]] = nx.community.greedy_modularity_communities(
        graph.dag.to_undirected(as_view=True)
    )
    return found


def main(path: Path = BERT) -> None:
    graph = Model.load(path).main
    print(f"{path.name}: {len(graph)} nodes, {graph.dag.number_of_edges()} edges")

    chain = longest_path(graph)
    print(f"longest path: {len(chain)} nodes, mostly {_mostly(chain)}")

    through = dominators(graph)
    print(f"all of {graph.outputs[-1].name!r} goes through {len(through)} nodes, like {through[1]}")

    cuts = cut_nodes(graph)
    print(f"without one of {len(cuts)} nodes the graph falls apart")

    groups = communities(graph)
    print(f"{len(groups)} communities; the largest is {len(groups[0])} nodes: {_mostly(groups[0])}")


def _mostly(nodes: list[Node] | set[Node]) -> str:
    counts = Counter(node.op_type for node in nodes)
    return ", ".join(f"{op_type} {count}" for op_type, count in counts.most_common(3))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
