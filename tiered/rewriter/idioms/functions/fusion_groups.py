"""The groups of nodes that TVM's FuseOps would make one kernel of.

Source: TVM, src/relay/transforms/fuse_ops.cc and src/relay/analysis/graph_partitioner.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from tiered.rewriter.idioms.functions.outlining import KEPT, marks_of

if TYPE_CHECKING:
    from tiered.graph import Graph, Node, Value


class OpPatternKind(IntEnum):
    """TVM's OpPatternKind; a larger kind is harder to fuse."""

    ELEMENTWISE = 0
    BROADCAST = 1
    INJECTIVE = 2
    REDUCTION = 3
    OUT_ELEMENTWISE_FUSABLE = 4
    OPAQUE = 8


_KINDS: Final = {
    OpPatternKind.ELEMENTWISE: (
        "Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Cast CastLike Ceil Celu Clip Cos Cosh Elu "
        "Erf Exp Floor Gelu HardSigmoid HardSwish Identity IsInf IsNaN LeakyRelu Log Mish Neg Not "
        "Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Swish Tan "
        "Tanh ThresholdedRelu"
    ),
    OpPatternKind.BROADCAST: (
        "Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Expand Greater GreaterOrEqual "
        "Less LessOrEqual Max Mean Min Mod Mul Or Pow PRelu Sub Sum Where Xor"
    ),
    OpPatternKind.INJECTIVE: (
        "Concat DepthToSpace Flatten Gather GatherElements GatherND Pad Reshape Resize "
        "ReverseSequence Slice SpaceToDepth Squeeze Tile Transpose Trilu Unsqueeze Upsample"
    ),
    OpPatternKind.REDUCTION: (
        "ArgMax ArgMin ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean "
        "ReduceMin ReduceProd ReduceSum ReduceSumSquare"
    ),
    OpPatternKind.OUT_ELEMENTWISE_FUSABLE: (
        "AveragePool BatchNormalization Conv ConvInteger ConvTranspose Gemm GlobalAveragePool "
        "GlobalMaxPool LRN LpPool MatMul MatMulInteger MaxPool"
    ),
}
_KIND_OF: Final = {op: kind for kind, names in _KINDS.items() for op in names.split()}


def kind_of(node: Node) -> OpPatternKind:
    """Return the kind of a node.

    Opaque are unknown operators, random ones, nodes with bodies, those of several outputs, and
    those that read and write quantized values, which backends match as pairs.
    """
    if node.domain or sum(output is not None for output in node.outputs) != 1:
        return OpPatternKind.OPAQUE
    return _KIND_OF.get(node.op_type, OpPatternKind.OPAQUE)


Fusable = Callable[[OpPatternKind, bool], bool]
"""Whether a group of a kind may be on the path; the flag says whether it is the last one."""

_PHASES: Final = 2


def fusion_groups(graph: Graph, *, max_depth: int, level: int) -> list[list[Node]]:
    """Return the groups of at least two nodes, producers first; each group is convex.

    A node is fused into its immediate post-dominator if the kinds of both, and of all nodes
    between, allow it:

    - out-elementwise-fusable (a Conv) with elementwise nodes behind it, through broadcasts;
    - elementwise and broadcast with elementwise, broadcast, injective or a reduction;
    - injective with injective nodes and weaker ones, after all convolutions have finished.

    Args:
        graph: the graph.
        max_depth: the most nodes of a group.
        level: 0 makes no groups, 1 groups without reductions, 2 all of them.
    """
    if level < 1:
        return []
    work = _Partitioner(graph, max_depth, has_reductions=level > 1)
    for phase in range(_PHASES):
        work.run(phase)
    return work.result()


class _Group:
    """A group of nodes; merged groups form a tree, and its root has the kind and the size."""

    __slots__ = ("has_anchor", "kind", "marks", "parent", "size")

    def __init__(self, kind: OpPatternKind, marks: object) -> None:
        self.parent: _Group | None = None
        self.kind = kind
        self.marks = marks
        self.size = 1
        self.has_anchor = kind is OpPatternKind.OUT_ELEMENTWISE_FUSABLE

    def root(self) -> _Group:
        root = self
        while root.parent is not None:
            root = root.parent
        group = self
        while group.parent is not None:
            group.parent, group = root, group.parent
        return root


class _Partitioner:
    def __init__(self, graph: Graph, max_depth: int, *, has_reductions: bool) -> None:
        self.order = graph.topological_order()
        self.max_depth = max_depth
        self.has_reductions = has_reductions
        self.kinds = {node: _kind(node) for node in self.order}
        self.groups = {node: _Group(self.kinds[node], marks_of(node)) for node in self.order}
        self.readers = {node: node.successors for node in self.order}
        # The immediate post-dominator, and the strongest kind on the paths to it.
        self.above: dict[Node, Node | None] = {}
        self.way: dict[Node, OpPatternKind] = {}
        self._depth: dict[Node, int] = {}
        for node in reversed(self.order):
            self._dominate(node)

    def _dominate(self, node: Node) -> None:
        if any(_is_external(value) for value in node.outputs) or not self.readers[node]:
            self.above[node], self.way[node], self._depth[node] = None, OpPatternKind.OPAQUE, 1
            return
        dominator: Node | None = self.readers[node][0]
        kind = OpPatternKind.ELEMENTWISE
        for reader in self.readers[node]:
            kind = max(kind, self._edge(node, reader))
            dominator, kind = self._common(dominator, reader, kind)
        self.above[node], self.way[node] = dominator, kind
        self._depth[node] = 1 if dominator is None else self._depth[dominator] + 1

    def _edge(self, node: Node, reader: Node) -> OpPatternKind:
        """Return how a reader uses a node: a broadcast of an equal shape is elementwise."""
        kind = self.kinds[reader]
        if kind is not OpPatternKind.BROADCAST:
            return kind
        shape = reader.output.shape
        own = next((value.shape for value in node.outputs if value is not None), None)
        is_equal = shape is not None and shape == own and None not in shape
        return OpPatternKind.ELEMENTWISE if is_equal else kind

    def _common(
        self, one: Node | None, other: Node | None, kind: OpPatternKind
    ) -> tuple[Node | None, OpPatternKind]:
        """Return the least common post-dominator, and the strongest kind on the ways to it."""
        while one is not other:
            if one is None or other is None:
                return None, OpPatternKind.OPAQUE
            if self._depth[one] >= self._depth[other]:
                kind, one = max(kind, self.way[one]), self.above[one]
            else:
                kind, other = max(kind, self.way[other]), self.above[other]
        return one, kind

    def run(self, phase: int) -> None:
        for node in self.order:
            group, above = self.groups[node].root(), self.above[node]
            if above is None or group is self.groups[above].root():
                continue
            fusable = self._rule(group.kind, self.way[node], phase)
            if fusable is not None:
                path = self._path(node, above, fusable, group.marks)
                if path is not None and self._size(node, path) <= self.max_depth:
                    self._merge((node, *path), above)

    def _rule(self, kind: OpPatternKind, way: OpPatternKind, phase: int) -> Fusable | None:
        """Return what may be on the path of a group to its post-dominator; None: nothing."""
        if kind is OpPatternKind.OUT_ELEMENTWISE_FUSABLE:
            return _up_to_broadcast if way is OpPatternKind.ELEMENTWISE else None
        if kind <= OpPatternKind.BROADCAST:
            if way <= OpPatternKind.INJECTIVE or (
                way is OpPatternKind.REDUCTION and self.has_reductions
            ):
                return _up_to_anchor
            return None
        return _up_to_injective if kind is OpPatternKind.INJECTIVE and phase == 1 else None

    def _path(
        self, source: Node, sink: Node, fusable: Fusable, marks: object
    ) -> Sequence[Node] | None:
        """Return the nodes from a source to its post-dominator; None if one is not fusable."""
        pending, seen = list(self.readers[source]), dict.fromkeys(self.readers[source])
        while pending:
            node = pending.pop()
            group = self.groups[node].root()
            if group.marks != marks or not fusable(group.kind, node is sink):
                return None
            if len(seen) >= self.max_depth:
                return None
            for reader in self.readers[node] if node is not sink else ():
                if reader not in seen:
                    seen[reader] = None
                    pending.append(reader)
        return tuple(seen)

    def _size(self, node: Node, path: Iterable[Node]) -> int:
        roots = {id(group): group for group in (self.groups[each].root() for each in (node, *path))}
        return sum(group.size for group in roots.values())

    def _merge(self, nodes: Iterable[Node], sink: Node) -> None:
        target = self.groups[sink].root()
        for node in nodes:
            group = self.groups[node].root()
            if group is target:
                continue
            group.parent = target
            target.size += group.size
            if group.has_anchor:
                target.has_anchor = True
                target.kind = max(target.kind, group.kind)

    def result(self) -> list[list[Node]]:
        found: dict[_Group, list[Node]] = {}
        for node in self.order:
            found.setdefault(self.groups[node].root(), []).append(node)
        return [nodes for nodes in found.values() if len(nodes) > 1]


def _kind(node: Node) -> OpPatternKind:
    return OpPatternKind.OPAQUE if KEPT in node.metadata else kind_of(node)


def _is_external(value: Value | None) -> bool:
    """Return whether something else than nodes of the graph reads a value."""
    return value is not None and (value.is_graph_output or value.pins > 0)


def _up_to_broadcast(kind: OpPatternKind, is_sink: bool) -> bool:
    return kind <= OpPatternKind.BROADCAST


def _up_to_anchor(kind: OpPatternKind, is_sink: bool) -> bool:
    if not is_sink:
        return kind <= OpPatternKind.INJECTIVE
    return kind is not OpPatternKind.OPAQUE


def _up_to_injective(kind: OpPatternKind, is_sink: bool) -> bool:
    return kind <= OpPatternKind.INJECTIVE
