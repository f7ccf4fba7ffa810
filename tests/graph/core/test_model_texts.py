"""What the file says of the model: metadata, doc string, producer; passes edit it."""

import onnx
import pytest

from tests.small import content, model, proto
from tiered import Model, PassContext, Sequential, module_pass, optimize_model
from tiered.pipeline.instruments import Trace


def described() -> onnx.ModelProto:
    made = proto()
    made.producer_name, made.producer_version, made.doc_string = "exporter", "2.1", "a text"
    onnx.helper.set_model_props(made, {"who": "me", "when": "now"})
    return made


@module_pass(opt_level=1)
def sign(model: Model, _: PassContext) -> None:
    """Say who made the model, as a test."""
    model.set_metadata({**model.metadata, "signed": "yes"})
    model.describe(producer=("mine", "3"), doc_string="")


def test_a_module_pass_reads_and_writes_them() -> None:
    result = optimize_model(described(), passes=Sequential([sign])).model
    assert result.metadata == {"who": "me", "when": "now", "signed": "yes"}
    assert (result.producer, result.doc_string) == (("mine", "3"), "")
    made = result.to_proto()
    assert {entry.key: entry.value for entry in made.metadata_props}["signed"] == "yes"
    assert not made.HasField("doc_string")


def test_they_are_edits_that_are_undone() -> None:
    view = Model.from_proto(described())
    before, mark = content(view), view.mark()
    sign.apply(view)
    assert view.changed_since(mark)
    view.undo_to(mark)
    assert content(view) == before
    with pytest.raises(RuntimeError):
        _fail_after_an_edit(view)
    assert content(view) == before


def _fail_after_an_edit(view: Model) -> None:
    with view.transaction():
        view.set_metadata({})
        raise RuntimeError


def test_the_same_texts_are_no_edit() -> None:
    view = Model.from_proto(described())
    mark = view.mark()
    view.set_metadata(view.metadata)
    view.describe()
    view.describe(producer=view.producer, doc_string=view.doc_string)
    assert not view.changed_since(mark)


def test_a_copy_of_the_metadata_is_not_the_metadata() -> None:
    view = model()
    view.metadata["k"] = "v"
    assert view.metadata == {}


def test_a_trace_sees_the_pass() -> None:
    trace = Trace()
    optimize_model(described(), passes=Sequential([sign]), trace=trace)
    assert trace.spans[-1].name == "sign" or any(s.name == "sign" for s in trace.spans[0].walk())
