"""Model: a whole ModelProto as a view that is edited in place, journalled, and rolled back.

`ModelState` holds the graphs and the journal. `Model` adds loading, saving, shape inference and
checks. Edits are methods of `Graph`, which lists them by the file that defines them. What few runs
use is loaded by the method that uses it.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import onnx
from google.protobuf.message import DecodeError

from tiered.graph.core.edit import Edit
from tiered.graph.core.graph import Graph
from tiered.graph.core.lazy_bytes import is_stored, note_size
from tiered.graph.core.model import ModelState
from tiered.graph.core.node import Node
from tiered.graph.edits.builder import operators_of
from tiered.graph.edits.content import close_model, exchange_content
from tiered.graph.edits.heirs import inherit_names
from tiered.graph.edits.undo import undo_table
from tiered.graph.io.export import export_model, inferred_declarations
from tiered.graph.io.load import check_calls, load_function, load_model
from tiered.graph.io.protobuf_scan import read_model_bytes
from tiered.graph.io.save import save_model, tensors_of
from tiered.graph.io.text_check import wrong_text
from tiered.graph.opset.newest_form import operand_index, operands_of
from tiered.graph.queries import call_graph as calls, onnx_checker
from tiered.graph.queries.schema_check import check_operators
from tiered.graph.shape_inference.symbolic_dims import Dims
from tiered.graph.shape_inference.type_engine import ShapeInference
from tiered.support.errors import ModelError, words_of
from tiered.support.loading import LoadedLater, paused_collector
from tiered.support.numerics import Numerics

if TYPE_CHECKING:
    from tiered.graph.core.graph import Function
    from tiered.graph.io.save import Storage
    from tiered.graph.shape_inference.type_coverage import TypeCoverage

_INFO_IN_FUNCTIONS = 10
"""The IR version from which on functions have value_info."""

Node._newest_operands = operands_of
Node._operand_index = operand_index
Graph._operators = operators_of
Graph._inherit_names = staticmethod(inherit_names)
Graph._to_networkx = LoadedLater("tiered.graph.queries.networkx_view", "to_networkx")
Graph._structural_hash = LoadedLater("tiered.graph.queries.structural_hash", "structural_hash")
Graph._outline = LoadedLater("tiered.graph.edits.outline", "outline")


class Model(ModelState):
    """The main graph, its nested bodies, the local functions, and everything else of a ModelProto.

    A model belongs to one thread.

    Attributes:
        folder: the folder of external data.
        source: the file that was read, for messages; None for a proto.
        skeleton: the part of the ModelProto beyond graphs, functions and opsets.
        functions: the local functions.
        opset_imports: the version of each imported domain; "" is ONNX's own.
        journal: every edit since the model was read, in order.
        gate: the counter of rewrites, which can stop after a number of them.
        notes: remarks about the model, which the command line prints.
    """

    def __init__(self, folder: str = "", source: str | None = None) -> None:
        super().__init__(folder, source)
        self.types = ShapeInference()
        self.dims = Dims()
        self.journal.undo_table = undo_table(self)
        # The result of onnx.checker for `origin`, once computed.
        self._complaint: tuple[str | None] | None = None

    # --- files ------------------------------------------------------------------------------------

    @classmethod
    def from_proto(
        cls, proto: onnx.ModelProto, *, folder: str = "", source: str | None = None
    ) -> Model:
        """Return the view of a ModelProto; the proto is not changed.

        Args:
            proto: the model; its tensors are shared with the view.
            folder: the folder of its external data.
            source: the name for messages.

        Raises:
            ModelError: names are undefined or defined twice, the graph has a cycle, or a node does
                not match the schema of its operator.
        """
        model = cls(folder, source)
        try:
            with paused_collector():
                load_model(model, proto)
                check_operators(model)
        except UnicodeDecodeError as error:
            raise ModelError(f"{model.label} has a string that is not UTF-8") from error
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
            proto = onnx.ModelProto.FromString(read_model_bytes(path))
        except OSError as error:
            raise ModelError(f"cannot read {path}: {words_of(error)}") from error
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
        """Write the model to a file, whole or not at all.

        Args:
            path: the file; external weights go to `<path>.data` beside it.
            annotate: add the inferred types.
            storage: which weights are external; by default those that are external now.

        Raises:
            ModelError: the file cannot be written.
        """
        save_model(self, os.fspath(path), annotate=annotate, storage=storage)

    def close(self) -> None:
        """Free the memory of the view at once; later uses raise ModelError."""
        if self._main is not None:
            close_model(self)

    def skeleton_size(self) -> int:
        """Return the bytes of the model as a file, without the weights that are on disk now."""
        proto = export_model(self, is_bare=True)
        tensors = tensors_of(proto) if self.has_stored_constants else proto.graph.initializer
        notes = sum(note_size(tensor) for tensor in tensors if is_stored(tensor))
        return proto.ByteSize() - notes

    # --- content ----------------------------------------------------------------------------------

    def add(self, source: onnx.FunctionProto) -> Function:
        """Append a local function, and return it.

        Raises:
            ModelError: the id is taken, its nodes are no valid graph, or it would call itself.
        """
        with self.names.kept_on_error(), self.node_names.kept_on_error():
            function = load_function(self, source)
            self.functions.append(function)
            try:
                check_calls(self, function)
            finally:
                self.functions.pop()
            self.main._log(Edit.ADD_FUNCTION, function)
        self.functions.append(function)
        return function

    def convert_opset(
        self, version: int, *, ir: int = 0, numerics: Numerics = Numerics.EXACT
    ) -> None:
        """Convert the main graph and all local functions to an opset of ONNX's own domain.

        Args:
            version: the opset.
            ir: the IR version; 0 raises it only if the opset needs a newer one.
            numerics: beyond EXACT, a node without a form may become the function body of its
                operator, which rounds differently.

        Raises:
            OpsetError: nodes have no form at the opset; nothing is changed.
            UsageError: onnx does not know the opset, or the model cannot have the IR version.
        """
        from tiered.graph.edits.opset import convert_model

        convert_model(self, version, ir=ir, numerics=numerics)

    def exchange(self, proto: onnx.ModelProto) -> None:
        """Replace the content of the model by that of a ModelProto, as one edit.

        Raises:
            ModelError: the ModelProto is not a valid graph.
        """
        fresh = type(self)(self.folder, self.source)
        # Serial numbers continue: newer nodes and values have larger ones.
        fresh._serial = self._serial
        load_model(fresh, proto)
        self.has_external |= fresh.has_external
        exchange_content(self, fresh)

    call_graph = calls.call_graph
    recursive_functions = calls.recursive_functions
    expanded_size = calls.expanded_size

    def convert_root(self, root: Graph, version: int) -> None:
        """Convert the main graph or one function to an opset of ONNX's own domain.

        Raises:
            OpsetError: nodes have no form at the opset; nothing is changed.
            UsageError: onnx does not know the opset.
        """
        from tiered.graph.edits.opset import convert_root

        convert_root(root, version)

    def check_import(self, root: Graph, domain: str, version: int | None) -> None:
        """Raise if nodes would become invalid at a version of a domain; see `set_opset`.

        Raises:
            ModelError: nodes would be invalid at that version, or would have another meaning.
        """
        from tiered.graph.opset.same_meaning import check_import

        check_import(root, domain, version)

    def check_callee(self, graph: Graph, callee: tuple[str, str, str]) -> None:
        """Raise if a call would make a function call itself, or the graph reach one that does.

        Raises:
            ModelError: it would.
        """
        calls.check_callee(graph, callee)

    # --- types and validity -----------------------------------------------------------------------

    def type_coverage(self) -> TypeCoverage:
        """Return how many values have a type, and which have none; its `str()` is a sentence."""
        from tiered.graph.shape_inference.type_coverage import type_coverage

        return type_coverage(self)

    def set_input_shapes(
        self,
        shapes: Mapping[str, Sequence[int | str]],
        dims: Mapping[str, int | str] | None = None,
    ) -> None:
        """Set the shapes of inputs to sizes or names of dims, and infer all other shapes again.

        Args:
            shapes: the shape by name of the input; -1 keeps a dim.
            dims: the size by name of the dim, for all inputs that have it.

        Raises:
            UsageError: there is no such input or dim, or a size or name is invalid.
            ShapeError: an input has another rank or size, or the model needs other sizes.
        """
        from tiered.graph.shape_inference.set_input_shapes import set_input_shapes

        set_input_shapes(self, shapes, dims)

    def declare_known_sizes(self) -> None:
        """Write inferred sizes into the declared types of outputs and inner values."""
        from tiered.graph.shape_inference.set_input_shapes import declare_known_sizes

        declare_known_sizes(self)

    def declare_inferred_types(self) -> None:
        """Write the inferred types of inner values into the model, as value_info."""
        for graph in self.graphs():
            new = list(inferred_declarations(graph))
            if new and (not graph.is_function or self.ir_version >= _INFO_IN_FUNCTIONS):
                graph.set_declarations(new, keep=len(graph.declarations))

    def drop_false_declarations(self) -> list[str]:
        """Drop inner declarations that contradict the inferred types; return a message for each."""
        from tiered.graph.edits.declared_types import drop_false_declarations

        return drop_false_declarations(self)

    def strip(self, what: Collection[str]) -> list[str]:
        """Remove metadata, docs or names; return a line for each kind, with number and bytes."""
        from tiered.graph.edits.stripping import strip

        return strip(self, what)

    def as_loaded(self) -> onnx.ModelProto:
        """Return the model as it was before all edits, with its weights.

        Raises:
            ModelError: the model was not made of a ModelProto or a file.
        """
        if self.origin is None:
            raise ModelError(f"{self.label} was not loaded, so there is no earlier state of it")
        loaded = type(self).from_proto(self.origin, folder=self.folder)
        try:
            return loaded.to_proto()
        finally:
            loaded.close()

    def check(self) -> None:
        """Check the model, without its weights, by onnx.checker.

        Raises:
            ModelError: the checker rejects it, but accepted the model as it was loaded.
        """
        onnx_checker.check_model(self)

    def complaint(self) -> str | None:
        """Return why onnx.checker rejects the model as it is now; None if it accepts it."""
        return onnx_checker.current_complaint(self)

    def complaint_as_loaded(self) -> str | None:
        """Return why onnx.checker rejects the model as it was loaded; None if it accepts it.

        A string that is not UTF-8 is a reason too.
        """
        if self._complaint is None and self.origin is not None:
            if (path := wrong_text(self.origin)) is not None:
                self._complaint = (f"{path} is not UTF-8",)
                return self._complaint[0]
            loaded = type(self).from_proto(self.origin, folder=self.folder)
            try:
                self._complaint = (onnx_checker.current_complaint(loaded),)
            finally:
                loaded.close()
        return None if self._complaint is None else self._complaint[0]

    def check_view(self, *, types: bool = False) -> None:
        """Check the invariants of the view: use lists, indices, names and dag match the protos.

        Args:
            types: also check that no type contradicts the operands that it was inferred from.

        Raises:
            AssertionError: an invariant does not hold, which is a bug in tiered.
        """
        from tiered.graph.queries import view_invariants

        broken = list(view_invariants.violations(self))
        if types and not broken:
            broken = list(view_invariants.type_violations(self))
        assert not broken, "; ".join(broken)

    def copy(self, *, deep: bool = False) -> Model:
        """Return a view of the present model with new objects and an empty history.

        Args:
            deep: copy the weights too; otherwise both views share them, and neither writes them.
        """
        proto = export_model(self, is_bare=not deep)
        if deep:
            whole = onnx.ModelProto()
            whole.CopyFrom(proto)
            proto = whole
        made = type(self).from_proto(proto, folder=self.folder, source=self.source)
        made.has_external = self.has_external
        return made

    def __copy__(self) -> Model:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Model:
        return self.copy(deep=True)
