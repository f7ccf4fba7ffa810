"""Model: a whole ModelProto as a view that is edited in place, journalled, and rolled back."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import onnx
from google.protobuf.message import DecodeError

from tiered.errors import ModelError
from tiered.graph.core.gate import Gate
from tiered.graph.core.graph import Function, Graph
from tiered.graph.core.journal import Edit, Journal, Mark, Snapshot, Stamp
from tiered.graph.core.lazy_bytes import is_stored, note_size
from tiered.graph.core.names import Names
from tiered.graph.core.use_lists import leave_function
from tiered.graph.core.value import Value
from tiered.graph.edits.closing import CLOSED, close_model
from tiered.graph.edits.content import exchange_content
from tiered.graph.edits.knowledge import Knowledge
from tiered.graph.edits.undo import undo_table
from tiered.graph.io.export import export_model
from tiered.graph.io.load import check_calls, load_function, load_model
from tiered.graph.io.protobuf_scan import read_skeleton
from tiered.graph.queries import call_graph as calls
from tiered.graph.queries.schema_check import check_operators
from tiered.graph.shape_inference.symbolic_dims import Dims
from tiered.support.loading import paused_collector

if TYPE_CHECKING:
    from tiered.graph.io.save import Storage
    from tiered.graph.shape_inference.coverage import TypeCoverage

T = TypeVar("T")


class Model:
    """The main graph, its nested bodies, the local functions, and everything else of a ModelProto.

    A model belongs to one thread.

    Attributes:
        folder: where external data is looked for.
        source: the file that was read, for messages; None for a proto.
        skeleton: what the ModelProto holds beyond graphs, functions and opsets.
        functions: the local functions.
        opset_imports: the version of each imported domain; "" is ONNX's own.
        journal: every edit since the model was read, in order.
        gate: what counts rewrites, and stops after a number of them.
        notes: remarks of the model's own, which the command line prints.
    """

    def __init__(self, folder: str = "", source: str | None = None) -> None:
        self.folder = folder
        self.source = source
        self.skeleton = onnx.ModelProto()
        # What was loaded; the view shares its tensors anyway.
        self.origin: onnx.ModelProto | None = None
        # What onnx has against that, once somebody asked.
        self.complaint: tuple[str | None] | None = None
        # Whether Constant nodes hold weights that are on disk.
        self.has_stored_constants = False
        self._main: Graph | None = None
        self.functions: list[Function] = []
        self.opset_imports: dict[str, int] = {}
        # How the file spells each domain ("", "ai.onnx", or not at all).
        self.spellings: dict[str, str | None] = {}
        self.journal = Journal()
        self.journal.undo_table = undo_table(self)
        self.gate = Gate()
        self.names = Names()
        self.node_names = Names()
        self.is_inferred = False
        self.dims = Dims()
        self.types_stamp: Stamp | None = None
        # What new nodes are named after: the node that a rewrite replaces.
        self.hint: str | None = None
        self.notes: list[str] = []
        # Multiplications that constant folding had taken, each with the moment of that count.
        self._folded: list[tuple[Stamp, int]] = []
        self._serial = 0
        self._analyses: dict[Callable[[Model], Any], tuple[Stamp, Any]] = {}

    def __repr__(self) -> str:
        if self._main is None:
            return f"<Model {self.label}, closed>"
        return f"<Model {self.label}, {sum(len(graph) for graph in self.graphs())} nodes>"

    # --- in and out -------------------------------------------------------------------------------

    @classmethod
    def from_proto(
        cls, proto: onnx.ModelProto, *, folder: str = "", source: str | None = None
    ) -> Model:
        """Return the view of a ModelProto, which is not changed.

        Args:
            proto: the model; its tensors are shared with the view.
            folder: where its external data is.
            source: the name for messages.

        Raises:
            ModelError: names are undefined or defined twice, the graph has a cycle, or a node is
                not what its operator takes.
        """
        model = cls(folder, source)
        try:
            with paused_collector():
                load_model(model, proto)
                check_operators(model)
        except UnicodeDecodeError as error:
            raise ModelError(f"{model.label} has a text that is not UTF-8") from error
        model.origin = proto
        return model

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Model:
        """Return the view of a model file; external data is not read.

        Raises:
            ModelError: the file cannot be read or is not an ONNX model.
        """
        path = os.fspath(path)
        try:
            content = read_skeleton(path)
            if content is None:
                with open(path, "rb") as file:
                    content = file.read()
            proto = onnx.ModelProto.FromString(content)
            del content
        except OSError as error:
            raise ModelError(f"cannot read {path}: {error.strerror or error}") from error
        except DecodeError as error:
            raise ModelError(f"{path} is not an ONNX model: it does not parse") from error
        if not proto.ListFields():
            raise ModelError(f"{path} is empty; expected an ONNX model")
        try:
            model = cls.from_proto(proto, folder=os.path.dirname(path), source=path)
        except ModelError as error:
            text = str(error)
            raise ModelError(text if text.startswith(path) else f"{path}: {text}") from error
        return model

    def to_proto(self, *, annotate: bool = False) -> onnx.ModelProto:
        """Return the model as a new ModelProto; `annotate` adds the inferred types."""
        return export_model(self, annotate=annotate)

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        annotate: bool = False,
        storage: Storage | None = None,
    ) -> None:
        """Write the model to a file: whole, or not at all.

        Args:
            path: the file; external weights go to `<path>.data` beside it.
            annotate: add the inferred types.
            storage: which weights are external; by default those that are so now.

        Raises:
            ModelError: the file cannot be written.
        """
        from tiered.graph.io.save import save_model

        save_model(self, os.fspath(path), annotate=annotate, storage=storage)

    def close(self) -> None:
        """Free what the view holds at once; whoever asks it for something later gets an error."""
        if self._main is not None:
            close_model(self)

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
        """Return what messages call the model."""
        return self.source or "the model"

    @property
    def nbytes(self) -> int:
        """Return the bytes of all tensors and nodes as they are now, external data too."""
        total = 0
        for graph in self.graphs():
            total += sum(value.default.nbytes for value in graph.initializers if value.default)
            for node in graph.nodes:
                stored = node.constant_tensor() if self.has_stored_constants else None
                total += node.proto.ByteSize() if stored is None else stored.nbytes
        return total

    def skeleton_size(self) -> int:
        """Return the bytes of the model as a file, without the weights that are on disk now."""
        from tiered.graph.io.save import tensors_of

        proto = export_model(self, is_bare=True)
        tensors = tensors_of(proto) if self.has_stored_constants else proto.graph.initializer
        notes = sum(note_size(tensor) for tensor in tensors if is_stored(tensor))
        return proto.ByteSize() - notes

    @property
    def ir_version(self) -> int:
        """Return the version of the file format; `set_ir_version` changes it."""
        return self.skeleton.ir_version

    def opset(self, domain: str = "") -> int:
        """Return the imported version of a domain; 0 if it is not imported."""
        return self.opset_imports.get(domain, 0)

    def graphs(self) -> Iterator[Graph]:
        """Yield every graph: the main one, then the local functions, bodies after their owner."""
        for root in (self.main, *self.functions):
            pending = [root]
            while pending:
                graph = pending.pop()
                yield graph
                bodies = [body for node in graph.owners for body in node.bodies]
                pending += reversed(bodies)

    def function(self, domain: str, name: str, overload: str = "") -> Function | None:
        """Return a local function, None if the model has none of this id."""
        wanted = (domain, name, overload)
        return next((entry for entry in self.functions if entry.id == wanted), None)

    call_graph = calls.call_graph
    recursive_functions = calls.recursive_functions
    expanded_size = calls.expanded_size

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
        """Remove a local function that nobody calls."""
        position = self.functions.index(function)
        self.main._log(Edit.REMOVE_FUNCTION, function, position)
        del self.functions[position]
        leave_function(function)

    def add(self, source: onnx.FunctionProto) -> Function:
        """Add a local function, the last of them, and return it.

        Raises:
            ModelError: there is one of this id already, its nodes make no graph, or it would call
                itself.
        """
        with self.names.kept_on_error(), self.node_names.kept_on_error():
            function = load_function(self, source)
            self.functions.append(function)
            try:
                check_calls(self)
            finally:
                self.functions.pop()
            self.main._log(Edit.ADD_FUNCTION, function)
        self.functions.append(function)
        return function

    def set_opset(self, domain: str, version: int | None, root: Graph | None = None) -> None:
        """Import a domain at a version, for the model or one function; None drops the import.

        Nodes are not converted.

        Raises:
            ModelError: nodes would be invalid at that version, or would mean something else.
        """
        holder: Model | Graph = self if root is None or not root.is_function else root
        if holder.opset_imports.get(domain) == version:
            return
        from tiered.graph.opset.same_meaning import check_import

        check_import(root if root is not None and root.is_function else self.main, domain, version)
        self.main._log(Edit.SET_OPSET, holder, dict(holder.opset_imports))
        if version is None:
            del holder.opset_imports[domain]
        else:
            holder.opset_imports[domain] = version

    def set_ir_version(self, version: int) -> None:
        """Raise or lower the IR version."""
        self.main._log(Edit.SET_IR_VERSION, self, self.skeleton.ir_version)
        self.skeleton.ir_version = version

    def exchange(self, proto: onnx.ModelProto) -> None:
        """Hold what a ModelProto says from now on; an edit like any other, which can be undone.

        Raises:
            ModelError: the ModelProto makes no graph.
        """
        exchange_content(self, proto)

    # --- types and validity -----------------------------------------------------------------------

    def refresh_types(self) -> None:
        """Infer what has no type yet, and again what reads a value that is known better now."""
        from tiered.graph.shape_inference.infer import refresh_types

        refresh_types(self)

    def type_coverage(self) -> TypeCoverage:
        """Return how many values have a type, and which have none: `str()` of it is a sentence."""
        from tiered.graph.shape_inference.coverage import type_coverage

        return type_coverage(self)

    def forget_types(self) -> None:
        """Forget what was inferred, as the interface changed; asked for, it is inferred anew."""
        before = Knowledge.of(self)
        self.main._log(Edit.FORGET_TYPES, self, before)
        before.forget(self)

    def set_input_shapes(
        self,
        shapes: Mapping[str, Sequence[int | str]],
        dims: Mapping[str, int | str] | None = None,
    ) -> None:
        """Give inputs other shapes: sizes or names, by input; the rest of the model follows.

        Args:
            shapes: by name of the input; -1 keeps a dim.
            dims: by name of the dim, for all inputs that have it.

        Raises:
            UsageError: there is no such input or dim, or a size or a name is none.
            ShapeError: it has another rank or size, or the model only works with other sizes.
        """
        from tiered.graph.shape_inference.set_input_shapes import set_input_shapes

        set_input_shapes(self, shapes, dims)

    def declare_known_sizes(self) -> None:
        """Write inferred sizes into what is declared of outputs and other values, save inputs."""
        from tiered.graph.shape_inference.set_input_shapes import declare_known_sizes

        declare_known_sizes(self)

    def check(self) -> None:
        """Hold the model against onnx.checker, without its weights.

        Raises:
            ModelError: the checker rejects it, and did not reject what was loaded.
        """
        from tiered.graph.queries.onnx_checker import check_model

        check_model(self)

    def check_view(self, *, types: bool = False) -> None:
        """Prove the invariants of the view: links, indices, names, networkx agree with the protos.

        Args:
            types: prove too that no type contradicts the operands it comes from.

        Raises:
            AssertionError: one does not hold, which is a bug in tiered.
        """
        from tiered.graph.queries.invariants import type_violations, violations

        broken = list(violations(self))
        if types and not broken:
            broken = list(type_violations(self))
        assert not broken, "; ".join(broken)

    # --- history ----------------------------------------------------------------------------------

    def mark(self) -> Mark:
        """Return the present place in the journal."""
        return len(self.journal.entries)

    def changed_since(self, mark: Mark) -> bool:
        """Return whether an edit was made after a mark that is not undone."""
        return len(self.journal.entries) != mark

    def undo_to(self, mark: Mark) -> None:
        """Undo every edit made after the mark: the same objects are back in the same places."""
        self.journal.undo_to(mark)

    def snapshot(self) -> Snapshot:
        """Return the present state, to which `.restore()` brings the model back."""
        return Snapshot(self.journal)

    def copy(self, *, deep: bool = False) -> Model:
        """Return another view of the model as it is now: with new objects, and without history.

        Args:
            deep: copy the weights too, which the views share otherwise: nobody writes to them.
        """
        proto = export_model(self, is_bare=not deep)
        if deep:
            whole = onnx.ModelProto()
            whole.CopyFrom(proto)
            proto = whole
        return type(self).from_proto(proto, folder=self.folder, source=self.source)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Undo what the block did if it raises; the exception goes on."""
        mark = self.mark()
        try:
            yield
        except BaseException:
            self.undo_to(mark)
            raise

    def analysis(self, compute: Callable[[Model], T]) -> T:
        """Return `compute(model)`, kept until the next edit."""
        known = self._analyses.get(compute)
        if known is not None and not self.journal.moved_since(known[0]):
            return known[1]  # type: ignore[no-any-return]  # it is what compute returned
        result = compute(self)
        self._analyses[compute] = (self.journal.stamp(), result)
        return result

    @property
    def folded_work(self) -> int:
        """Return how many multiplications constant folding took, but for what was undone."""
        counts, journal = self._folded, self.journal
        while counts and journal.kept_since(counts[-1][0]) < counts[-1][0].length:
            counts.pop()
        return counts[-1][1] if counts else 0

    def note_folded_work(self, work: int) -> None:
        """Count multiplications whose results are the latest edits."""
        self._folded.append((self.journal.stamp(), self.folded_work + work))

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
