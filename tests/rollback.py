"""What a pass did is undone exactly: the first bytes are back, and the view holds at each point."""

from typing import Any

import onnx

from tiered import Model, PassContext, get_pass
from tiered.testing import parse


def assert_undone(pass_name: str, text: str | onnx.ModelProto, **options: Any) -> onnx.ModelProto:
    """Run a pass that changes the model, take it back, run it again; return what it makes."""
    model = Model.from_proto(parse(text) if isinstance(text, str) else text)
    for graph in model.graphs():
        # What is asked for before an edit must be right after it, and after it is undone.
        assert graph.dag is not None
        graph.topological_order()
        for value in graph.values.values():
            assert value.type is None or str(value.type)
    first, mark = _content(model), model.mark()
    _apply(pass_name, model, options)
    assert model.changed_since(mark), f"{pass_name} did nothing"
    model.check_view()
    made = _content(model)
    model.undo_to(mark)
    model.check_view()
    assert _content(model) == first
    _apply(pass_name, model, options)
    model.check_view()
    assert _content(model) == made
    return model.to_proto()


def _apply(pass_name: str, model: Model, options: dict[str, Any]) -> None:
    get_pass(pass_name, **options).apply(model, PassContext.isolated(opt_level=4))


def _content(model: Model) -> bytes:
    return bytes(model.to_proto().SerializeToString(deterministic=True))
