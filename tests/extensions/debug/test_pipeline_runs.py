"""A pipeline on a model, run as often as is needed: each run starts from the model as it is."""

from pathlib import Path
from typing import Any

import onnx

from tests.small import FOUR, drop_neg, failing, keep_abs, neg_to_abs, ops, proto
from tiered import Model, Pass
from tiered.extensions.debug.pipeline_runs import Subject, folder_of, load, shaped
from tiered.support.errors import PassError
from tiered.testing import parse


def subject(*passes: Pass, **more: Any) -> Subject:
    return Subject(proto(FOUR), list(passes), **more)


def test_a_run_stops_after_the_rewrites_that_it_may_make() -> None:
    of = subject(neg_to_abs)
    assert isinstance(of.source, onnx.ModelProto)
    before = of.source.SerializeToString()
    assert [of.run(limit).rewrites for limit in (0, 1, 3)] == [0, 1, 3]
    assert ops(of.run(3).model) == ["Abs", "Abs", "Abs", "Neg"]
    assert of.run(0).changed_by == []
    assert [info.name for info in of.run().changed_by] == ["neg_to_abs"]
    assert of.source.SerializeToString() == before


def test_only_passes_that_were_named_run_above_the_level() -> None:
    assert subject(drop_neg, settings={"opt_level": 0}).run().rewrites == 4
    assert Subject(proto(), None, {"opt_level": 0}).run().rewrites == 0
    assert Subject(proto(), None, {"opt_level": 3}).run().rewrites > 0


def test_the_error_of_a_pass_is_kept_with_the_model_as_it_was() -> None:
    found = subject(failing(ValueError("boom"))).run()
    assert isinstance(found.error, PassError)
    assert "boom" in str(found.error)
    assert ops(found.model) == ["Neg"] * 4
    assert subject(neg_to_abs).run().error is None


def test_a_pass_is_found_by_its_text() -> None:
    of = subject(neg_to_abs, keep_abs)
    assert of.pass_of(keep_abs.text) is not None
    assert of.pass_of("no_such_pass") is None


def test_other_shapes_are_another_model() -> None:
    source = parse("(float[N,2] x) => (float[N,2] y) { y = Neg(x) }")
    assert shaped(source, None) == (source, "")
    assert shaped(source, {}) == (source, "")
    made, folder = shaped(source, {"x": (3, 2)})
    assert isinstance(made, onnx.ModelProto)
    assert folder == ""
    assert [dim.dim_value for dim in made.graph.input[0].type.tensor_type.shape.dim] == [3, 2]


def test_a_proto_and_a_file_are_the_same_model(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(proto(), path)
    assert ops(load(path)) == ops(load(proto()))
    assert isinstance(load(proto(), "folder"), Model)
    assert load(proto(), "folder").folder == "folder"
    assert folder_of(path) == str(tmp_path)
    assert folder_of(proto()) == ""
