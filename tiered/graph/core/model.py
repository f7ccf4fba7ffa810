"""ModelState: the content and journal of a model; graph.api adds loading, saving and checks."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import onnx

from tiered.graph.core.analysis import Analyses
from tiered.graph.core.edit import Edit, Mark, Stamp
from tiered.graph.core.gate import Gate
from tiered.graph.core.graph import Function, Graph
from tiered.graph.core.journal import Journal, Snapshot
from tiered.graph.core.names import TakenNames
from tiered.graph.core.use_lists import leave_function
from tiered.graph.core.value import Value
from tiered.support.amounts import counted
from tiered.support.errors import ModelError

if TYPE_CHECKING:
    from tiered.graph.core.interface_map import InterfaceMap
    from tiered.graph.core.node import Node
    from tiered.graph.core.types import ValueType
    from tiered.graph.core.value import Elements
    from tiered.graph.shape_inference.symbolic_dims import Dims

T = TypeVar("T")

CLOSED: Final = "was closed and is empty: load it again, or keep a `.copy()` of it"


class TypeEngine(Protocol):
    """The inference of types that a model owns; graph.shape_inference provides it.

    It holds no reference to the model: that would keep a closed model in memory.
    """

    def infer(self, value: Value) -> None:
        """Infer the type of a value that a node of the model computes."""

    def elements_of(self, value: Value) -> Elements | None:
        """Return the known elements of a small integer or boolean value."""

    def outputs_of(self, node: Node) -> Sequence[ValueType | None]:
        """Return the types of a node's outputs for its present operands, without storing them."""

    def refresh(self, model: ModelState) -> None:
        """Infer missing types, and refine those of consumers of values with refined types."""

    def known(self, model: ModelState) -> Any:
        """Return all inferred types and elements, for `restore`."""

    def forget(self, model: ModelState) -> None:
        """Drop all inferred types and elements."""

    def restore(self, model: ModelState, known: Any) -> None:
        """Set the inferred types and elements to an earlier state."""


class ModelState(ABC):
    """The graphs of a model, its journal, names and types; `Model` is its only subclass.

    Nodes, values and edits depend on this class only, so that they do not import file access,
    inference or checks.
    """

    types: TypeEngine
    dims: Dims

    def __init__(self, folder: str = "", source: str | None = None) -> None:
        self.folder = folder
        self.source = source
        self.skeleton = onnx.ModelProto()
        # The proto that was loaded; the view shares its tensors anyway.
        self.origin: onnx.ModelProto | None = None
        # Whether Constant nodes have weights on disk.
        self.has_stored_constants = False
        # Whether it was read with weights in separate files: new large ones go to one as well.
        self.has_external = False
        self._main: Graph | None = None
        self.functions: list[Function] = []
        self.opset_imports: dict[str, int] = {}
        # How the file spells each domain ("", "ai.onnx", or not at all).
        self.spellings: dict[str, str | None] = {}
        self.journal = Journal()
        self.gate = Gate()
        self.names = TakenNames()
        self.node_names = TakenNames()
        # New nodes are named after the node that a rewrite replaces.
        self.hint: str | None = None
        self.notes: list[str] = []
        # Multiplications that constant folding had taken, each with the moment of that count.
        self._folded: list[tuple[Stamp, int]] = []
        # How edits of the interface relate it to the one before, each with their moment.
        self._relations: list[tuple[Stamp, InterfaceMap]] = []
        self._serial = 0
        # What algorithms found in an earlier run, by a key of their own.
        self.remembered: dict[Hashable, Any] = {}
        self._analyses = Analyses()

    def __repr__(self) -> str:
        if self._main is None:
            return f"<Model {self.label}, closed>"
        return f"<Model {self.label}, {counted(sum(map(len, self.graphs())), 'node')}>"

    def _repr_html_(self) -> str:
        """Return the interface and the operators as tables, for a notebook."""
        from tiered.support.pages.render import fragment, short
        from tiered.support.pages.sections import Table

        name = os.path.basename(self.label)
        if self._main is None:
            return fragment(f"{short(name)} (closed)")
        counts = Counter(node.operator for graph in self.graphs() for node in graph.nodes)
        ports = [
            (kind, short(value.name), str(value.type or "unknown type"))
            for kind, values in (("input", self.main.inputs), ("output", self.main.outputs))
            for value in values
        ]
        opsets = ", ".join(f"{domain or 'ai.onnx'} {v}" for domain, v in self.opset_imports.items())
        rows = [(short(op_type), count) for op_type, count in counts.most_common()]
        return fragment(
            f"{short(name)}: {counted(counts.total(), 'node')}, IR {self.ir_version}, "
            f"{short(opsets)}",
            Table("Interface", ("", "name", "type"), ports),
            Table("Operators", ("operator", "nodes"), rows),
        )

    # --- contents ---------------------------------------------------------------------------------

    @property
    def main(self) -> Graph:
        """The main graph.

        Raises:
            ModelError: the model was closed.
        """
        if self._main is None:
            raise ModelError(f"{self.label} {CLOSED}")
        return self._main

    @main.setter
    def main(self, graph: Graph) -> None:
        self._main = graph

    @property
    def label(self) -> str:
        """Return the name of the model in messages."""
        return self.source or "the model"

    @property
    def nbytes(self) -> int:
        """Return the present size in bytes of all tensors and nodes, external data included."""
        total = 0
        for graph in self.graphs():
            tensors = [value._tensor for value in graph._constants.values()]
            total += sum([tensor.nbytes for tensor in tensors if tensor is not None])
            for node in graph._nodes.values():
                stored = node.constant_tensor() if self.has_stored_constants else None
                total += node.proto.ByteSize() if stored is None else stored.nbytes
        return total

    @property
    def ir_version(self) -> int:
        """Return the version of the file format; `set_ir_version` changes it."""
        return self.skeleton.ir_version

    @property
    def metadata(self) -> dict[str, str]:
        """Return a copy of the metadata that the file has of the model, by key."""
        return {entry.key: entry.value for entry in self.skeleton.metadata_props}

    @property
    def doc_string(self) -> str:
        """Return the doc string of the model; `describe` changes it."""
        return self.skeleton.doc_string

    @property
    def producer(self) -> tuple[str, str]:
        """Return the name and the version of the program that made the model."""
        return self.skeleton.producer_name, self.skeleton.producer_version

    def opset(self, domain: str = "") -> int:
        """Return the imported version of a domain; 0 if it is not imported."""
        return self.opset_imports.get(domain, 0)

    def graphs(self) -> Iterator[Graph]:
        """Yield every graph: the main one, then the local functions, bodies after their node."""
        for root in (self.main, *self.functions):
            pending = [root]
            while pending:
                graph = pending.pop()
                yield graph
                bodies = [body for node in graph.body_nodes for body in node.bodies]
                pending += reversed(bodies)

    def function(self, domain: str, name: str, overload: str = "") -> Function | None:
        """Return a local function, None if the model has none of this id."""
        wanted = (domain, name, overload)
        return next((entry for entry in self.functions if entry.id == wanted), None)

    def training_nodes(self) -> Iterator[onnx.NodeProto]:
        """Yield the nodes, at any depth, of the training graphs, which the view leaves alone."""
        pending: list[onnx.GraphProto] = []
        for training in self.skeleton.training_info:
            pending += (training.initialization, training.algorithm)
        while pending:
            for node in pending.pop().node:
                yield node
                for attribute in node.attribute:
                    pending += attribute.graphs
                    if attribute.HasField("g"):
                        pending.append(attribute.g)

    # --- primitives -------------------------------------------------------------------------------

    def remove(self, function: Function) -> None:
        """Remove a local function without calls."""
        position = self.functions.index(function)
        self.main._log(Edit.REMOVE_FUNCTION, function, position)
        del self.functions[position]
        leave_function(function)

    def set_opset(self, domain: str, version: int | None, root: Graph | None = None) -> None:
        """Import a domain at a version, for the main graph or one function; None drops the import.

        The nodes of ONNX's own domain are converted to the version, those of bodies too. Nodes of
        other domains are not. `convert_opset` converts the main graph and all functions.

        Raises:
            ModelError: nodes would be invalid at that version, or would have another meaning; an
                `OpsetError` with a list of them where they are of ONNX's own domain.
            UsageError: onnx does not know that version of its domain.
        """
        holder: ModelState | Graph = self if root is None or not root.is_function else root
        before = holder.opset_imports.get(domain)
        if before == version:
            return
        importer = root if root is not None and root.is_function else self.main
        if not domain and before and version:
            self.convert_root(importer, version)
            return
        self.check_import(importer, domain, version)
        self.main._log(Edit.SET_OPSET, holder, dict(holder.opset_imports))
        if version is None:
            del holder.opset_imports[domain]
        else:
            holder.opset_imports[domain] = version

    def set_ir_version(self, version: int) -> None:
        """Raise or lower the IR version."""
        self.main._log(Edit.SET_IR_VERSION, self, self.skeleton.ir_version)
        self.skeleton.ir_version = version

    def set_metadata(self, metadata: Mapping[str, str]) -> None:
        """Replace the metadata of the model: `model.set_metadata({**model.metadata, "k": "v"})`."""
        if dict(metadata) == self.metadata:
            return
        skeleton = self._new_skeleton()
        del skeleton.metadata_props[:]
        for key, text in metadata.items():
            skeleton.metadata_props.add(key=key, value=text)
        self.skeleton = skeleton

    def describe(
        self, *, doc_string: str | None = None, producer: tuple[str, str] | None = None
    ) -> None:
        """Change what the file says of the model.

        Args:
            doc_string: the doc string; None leaves it.
            producer: the name and the version of the program that made the model; None leaves it.
        """
        name, version = producer or self.producer
        doc = self.doc_string if doc_string is None else doc_string
        fields = {"doc_string": doc, "producer_name": name, "producer_version": version}
        if all(getattr(self.skeleton, field) == text for field, text in fields.items()):
            return
        skeleton = self._new_skeleton()
        for field, text in fields.items():
            skeleton.ClearField(field)
            if text:
                setattr(skeleton, field, text)
        self.skeleton = skeleton

    def _new_skeleton(self) -> onnx.ModelProto:
        """Return a copy of the skeleton to write, and log that it takes the place of the old."""
        self.main._log(Edit.SET_SKELETON, self, self.skeleton)
        skeleton = onnx.ModelProto()
        skeleton.CopyFrom(self.skeleton)
        return skeleton

    # --- types ------------------------------------------------------------------------------------

    def refresh_types(self) -> None:
        """Infer missing types, and refine those of consumers of values with refined types."""
        self.types.refresh(self)

    def forget_types(self) -> None:
        """Drop the inferred types after an edit of the interface; they are inferred on demand."""
        self.main._log(Edit.FORGET_TYPES, self, self.types.known(self))
        self.types.forget(self)

    @abstractmethod
    def convert_root(self, root: Graph, version: int) -> None:
        """Convert the main graph or one function to an opset; see `set_opset`."""

    @abstractmethod
    def check_import(self, root: Graph, domain: str, version: int | None) -> None:
        """Raise if nodes would become invalid at a version of a domain; see `set_opset`."""

    @abstractmethod
    def check_callee(self, graph: Graph, callee: tuple[str, str, str]) -> None:
        """Raise if a call would make a function call itself, or the graph reach one that does."""

    @abstractmethod
    def complaint_as_loaded(self) -> str | None:
        """Return why onnx.checker rejects the model as it was loaded; None if it accepts it."""

    # --- history ----------------------------------------------------------------------------------

    def mark(self) -> Mark:
        """Return the present position in the journal."""
        return len(self.journal.entries)

    def changed_since(self, mark: Mark) -> bool:
        """Return whether an edit was made after a mark that is not undone."""
        return len(self.journal.entries) != mark

    def undo_to(self, mark: Mark) -> None:
        """Undo every edit made after the mark: the same objects are at the same positions again."""
        self.journal.undo_to(mark)

    def snapshot(self) -> Snapshot:
        """Return a snapshot of the present state; its `.restore()` undoes later edits."""
        return Snapshot(self.journal)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Undo the edits of the block if it raises; the exception propagates."""
        mark = self.mark()
        try:
            yield
        except BaseException:
            self.undo_to(mark)
            raise

    def analysis(self, compute: Callable[[Any], T]) -> T:
        """Return `compute(model)`, kept until an edit that an `Analysis` does not survive.

        The results of a plain function are kept until the next edit.
        """
        return self._analyses.of(self, compute)

    @property
    def folded_work(self) -> int:
        """Return how many multiplications constant folding took, without those undone."""
        counts, journal = self._folded, self.journal
        while counts and journal.kept_since(counts[-1][0]) < counts[-1][0].length:
            counts.pop()
        return counts[-1][1] if counts else 0

    def note_folded_work(self, work: int) -> None:
        """Count multiplications whose results are the latest edits."""
        self._folded.append((self.journal.stamp(), self.folded_work + work))

    def note_interface(self, relation: InterfaceMap) -> None:
        """State how the interface after the latest edits relates to the one before them."""
        self._relations.append((self.journal.stamp(), relation))

    def interface_since(self, stamp: Stamp | None = None) -> InterfaceMap:
        """Return how the present interface relates to that of an earlier moment, or the first."""
        from tiered.graph.core.interface_map import InterfaceMap  # for who compares models

        journal, found = self.journal, InterfaceMap()
        for moment, relation in self._relations:
            is_kept = journal.kept_since(moment) == moment.length
            if is_kept and (stamp is None or moment.length > stamp.length):
                found = relation.after(found)
        return found

    def note(self, text: str) -> None:
        """Keep a remark about the model itself."""
        self.notes.append(text)

    def next_serial(self) -> int:
        """Return a new serial number; later ones are larger."""
        self._serial += 1
        return self._serial

    def peek_serial(self) -> int:
        """Return the serial number that the next node or value will get."""
        return self._serial + 1

    @property
    def overridable(self) -> list[Value]:
        """Return the initializers that are also graph inputs: defaults, not constants."""
        return [value for value in self.main.inputs if value.is_overridable]
