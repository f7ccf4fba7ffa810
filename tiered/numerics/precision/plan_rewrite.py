"""The rewrite of a plan: constants, attributes, declared types, and a Cast for each change."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import onnx

from tiered.analysis.roles.role import graphs_of
from tiered.graph import DataType, Graph, Model, Node, Tensor, Value
from tiered.numerics.precision.cast_plan import CastPlan, plan_of, read_value
from tiered.numerics.precision.narrowing import Narrowing
from tiered.numerics.precision.variables import DTYPE_ATTRIBUTES, VariableUse, variables_of

Array = np.ndarray[Any, Any]


class Conversion(NamedTuple):
    """What a conversion did.

    Attributes:
        plan: the types that were decided.
        casts: how many Casts were added.
        clamped: the names of the constants with finite numbers beyond the range of the type.
    """

    plan: CastPlan
    casts: int
    clamped: tuple[str, ...]


def convert_precision(model: Model, narrowing: Narrowing, *, keeps_io: bool = True) -> Conversion:
    """Compute in a narrower type wherever the schemas and a narrowing allow it.

    Args:
        model: the model, edited in place.
        narrowing: the wide and the narrower type, and where it may be.
        keeps_io: whether inputs and outputs of the model keep their types.
    """
    model.refresh_types()
    plan = plan_of(variables_of(model, narrowing, keeps_io=keeps_io))
    if not plan.low:
        return Conversion(plan, 0, ())
    return _CastRewriter(model, narrowing, plan).run()


class _CastRewriter:
    def __init__(self, model: Model, narrowing: Narrowing, plan: CastPlan) -> None:
        self.model = model
        self.narrowing = narrowing
        self.wide, self.low = narrowing.wide, narrowing.low
        self.plan = plan
        self.is_low = {value: None for variable in plan.low for value in variable.values}
        # What computes a value of the narrower type, where a Cast has taken its name over.
        self.sources: dict[Value, Value] = {}
        self.converted: dict[tuple[Value, int], Value] = {}
        self.casts = 0
        self.clamped: dict[str, None] = {}

    def run(self) -> Conversion:
        """Edit the model as planned."""
        reads = [
            (use, dtype, read_value(use))
            for dtype, variables in (
                (self.low, self.plan.low),
                (self.wide, [variable for variable, _ in self.plan.kept]),
            )
            for variable in variables
            for use in variable.uses
        ]
        for value in self.is_low:
            self._set_attribute(value)
        self._write_out_dtypes()
        for graph in graphs_of(self.model):
            self._declare(graph)
        self._keep_output_names(reads)
        self.model.forget_types()
        outputs: dict[Graph, list[Value]] = {}
        for use, dtype, value in reads:
            found = self._of_type(value, dtype)
            if isinstance(use.reader, Node):
                if found is not value:
                    use.reader.owner.set_input(use.reader, use.place, found)
            else:
                listed = outputs.setdefault(use.reader, list(use.reader.outputs))
                listed[use.place] = found
        infos = self._output_infos(reads)
        for graph, declared in infos.items():
            graph.set_graph_outputs(outputs.get(graph, graph.outputs), declared)
        self.model.forget_types()
        self._discard_wide_constants(reads)
        return Conversion(self.plan, self.casts, tuple(self.clamped))

    # --- types that are written down --------------------------------------------------------------

    def _set_attribute(self, value: Value) -> None:
        """Set the attribute that decides the type of a value, if there is one."""
        node = value.producer
        name = None if node is None else DTYPE_ATTRIBUTES.get(node.op_type)
        if node is None or name is None:
            return
        if name != "value":
            node.owner.set_attribute(node, name, int(self.low))
            return
        fill = node.attr("value")
        array = np.zeros(1, self.wide.numpy) if fill is None else fill.numpy()
        node.owner.set_attribute(node, name, Tensor.of(self._narrowed(array, value.name)))

    def _write_out_dtypes(self) -> None:
        """Set the dtype of results that stay as they are where the input, which changes, has it."""
        low = {use.reader for variable in self.plan.low for use in variable.uses}
        for variable, _ in self.plan.kept:
            for node in (value.producer for value in variable.values):
                if node is None or node not in low:
                    continue
                if DTYPE_ATTRIBUTES.get(node.op_type) == "dtype" and node.attr("dtype") is None:
                    node.owner.set_attribute(node, "dtype", int(self.wide))

    def _declare(self, graph: Graph) -> None:
        """Write the narrower type into the declarations of inputs and inner values."""
        if any(value in self.is_low for value in graph.inputs):
            pairs = zip(graph.inputs, graph.input_infos, strict=True)
            infos = [self._retyped(info) if v in self.is_low else info for v, info in pairs]
            graph.set_graph_inputs(graph.inputs, infos)
            for value in graph.inputs:
                if value in self.is_low and value.default is not None:
                    array = self._narrowed(value.default.numpy(), value.name)
                    graph.set_constant(value, Tensor.of(array))
        if any(value in self.is_low for value, _ in graph.declarations):
            graph.set_declarations(
                (value, self._retyped(info) if value in self.is_low else info)
                for value, info in graph.declarations
            )

    def _output_infos(
        self, reads: list[tuple[VariableUse, DataType, Value]]
    ) -> dict[Graph, list[onnx.ValueInfoProto]]:
        """Return the declarations of the outputs of each graph that has some of a variable."""
        main = self.model.main
        shown = zip(main.outputs, main.output_infos, strict=True)
        changed = [self._retyped(info) if v in self.is_low else info for v, info in shown]
        infos: dict[Graph, list[onnx.ValueInfoProto]] = {main: changed}
        for use, dtype, _ in reads:
            if isinstance(use.reader, Graph):
                listed = infos.setdefault(use.reader, list(use.reader.output_infos))
                info = use.reader.output_infos[use.place]
                listed[use.place] = self._retyped(info) if dtype == self.low else info
        return infos

    def _retyped(self, info: onnx.ValueInfoProto) -> onnx.ValueInfoProto:
        """Return a declaration with the narrower type; one without a type as it is."""
        made = onnx.ValueInfoProto()
        made.CopyFrom(info)
        if made.type.tensor_type.elem_type == self.wide:
            made.type.tensor_type.elem_type = int(self.low)
        return made

    # --- values -----------------------------------------------------------------------------------

    def _keep_output_names(self, reads: list[tuple[VariableUse, DataType, Value]]) -> None:
        """Let a Cast compute each output that stays float, so that it keeps its name."""
        for use, _, value in reads:
            is_output = isinstance(use.reader, Graph) and use.reader.is_main
            if not is_output or value not in self.is_low or value in self.sources:
                continue
            node, graph = value.producer, value.owner
            assert node is not None, "an input keeps its type where an output does"
            cast = graph.add_node("Cast", [], 0, {"to": int(self.wide)})
            self.sources[value] = graph.insert_after(cast, node, value.index)
            self.converted[value, self.wide] = value
            self.casts += 1

    def _of_type(self, value: Value, dtype: DataType) -> Value:
        """Return a value in a type: itself, a Cast of it, or a copy of a constant."""
        if value.is_constant:
            return value if dtype == self.wide else self._constant(value)
        is_low = value in self.is_low
        if is_low == (dtype == self.low):
            return self.sources.get(value, value) if is_low else value
        found = self.converted.get((value, dtype))
        if found is None:
            graph = value.owner
            found = graph.op.Cast(self.sources.get(value, value), to=int(dtype))
            self.converted[value, dtype] = found
            self.casts += 1
        return found

    def _constant(self, value: Value) -> Value:
        """Return the copy of a constant in the narrower type."""
        found = self.converted.get((value, self.low))
        if found is None:
            assert value.tensor is not None
            array = self._narrowed(value.tensor.numpy(), value.name)
            found = value.owner.constant(Tensor.of(array), value.name)
            self.converted[value, self.low] = found
        return found

    def _narrowed(self, array: Array, name: str) -> Array:
        narrowed, is_clamped = self.narrowing.converted(array)
        if is_clamped:
            self.clamped[name] = None
        return narrowed

    def _discard_wide_constants(self, reads: list[tuple[VariableUse, DataType, Value]]) -> None:
        """Remove the constants that are only read in the narrower type, and give their names on."""
        for value in dict.fromkeys(value for _, _, value in reads):
            copy = self.converted.get((value, self.low))
            if copy is None:
                continue
            name, graph = value.name, value.owner
            graph.discard(value)
            if value.graph is None and copy.graph is not None:
                copy.owner.rename_value(copy, name)
