"""rewrite_annotated_ops: devices and pipeline stages from cuts, checked along edges."""

import onnx
import pytest

from tests.extensions.partition.graphs import assert_same_bits
from tests.module_passes.partition.targets import marks
from tiered import Model, ModelError, PassContext, UsageError, get_pass, optimize
from tiered.extensions.partition import as_models, device_partitions, device_proto, mark_devices
from tiered.runtime import Session, make_inputs
from tiered.testing import assert_unchanged, parse

TEXT = "(float[2] x) => (float[2] y) { a = Neg(x) b = Sin(a) c = Abs(b) y = Add(c, a) }"


def _model(ir_version: int = 10) -> onnx.ModelProto:
    model = parse(TEXT)
    model.ir_version = ir_version
    for node in model.graph.node:
        node.name = node.output[0]
    return model


def _both(model: onnx.ModelProto) -> list[tuple[str | None, str | None]]:
    said = (marks(model.graph, key) for key in ("tiered.device", "tiered.stage"))
    return list(zip(*said, strict=True))


def test_a_cut_assigns_its_ancestors() -> None:
    pass_ = get_pass("rewrite_annotated_ops", sharding=["b=0", "y=1"], pipelining=["b=0"])
    made = pass_(_model())
    assert _both(made) == [("0", "0"), ("0", "0"), ("1", "1"), ("1", "1")]
    assert pass_(made) == made


def test_the_fallback_is_for_nodes_without_a_device() -> None:
    pass_ = get_pass("rewrite_annotated_ops", fallback_device="cpu", sharding=["a=npu"])
    assert _both(pass_(_model())) == [("npu", None), ("cpu", None), ("cpu", None), ("cpu", None)]


def test_stages_never_decrease_along_edges() -> None:
    with pytest.raises(ModelError, match="'y' of stage 1 needs 'c' of stage 2"):
        get_pass("rewrite_annotated_ops", pipelining=["c=2", "y=1"])(_model())
    of = Model.from_proto(_model())
    # A node without a stage passes on those before it.
    of.main.set_metadata(of.main.nodes[0], {"tiered.stage": "3"})
    of.main.set_metadata(of.main.nodes[2], {"tiered.stage": "2"})
    with pytest.raises(ModelError, match="'c' of stage 2 needs 'a' of stage 3"):
        mark_devices(of)
    of.main.set_metadata(of.main.nodes[2], {"tiered.stage": "two"})
    with pytest.raises(ModelError, match="expected a whole number"):
        mark_devices(of)


def test_marks_survive_the_passes() -> None:
    made = get_pass("rewrite_annotated_ops", sharding=["b=0", "y=1"], pipelining=["b=0"])(_model())
    for level in range(5):
        after = optimize(made, opt_level=level)
        assert {said for pair in _both(after) for said in pair} <= {"0", "1"}


def test_devices_may_become_separate_models() -> None:
    source = _model()
    of = Model.from_proto(source)
    mark_devices(of, {"b": "gpu0", "y": "gpu1"}, {"b": 0})
    plan = as_models(of, device_partitions(of))
    assert [part.target for part in plan.parts] == ["gpu0_0", "gpu1_1"]
    feeds = make_inputs(source).feeds
    assert_same_bits(Session(source).run(feeds), plan.run(feeds))


def test_onnx_has_fields_for_devices_from_ir_11_on() -> None:
    of = Model.from_proto(_model(11))
    mark_devices(of, {"b": "gpu0", "y": "gpu1"}, {"b": 0})
    made = device_proto(of)
    onnx.checker.check_model(made)
    (configuration,) = made.configuration
    assert (configuration.num_devices, list(configuration.device)) == (2, ["gpu0", "gpu1"])
    said = [
        (entry.pipeline_stage, [list(spec.device) for spec in entry.sharding_spec])
        for node in made.graph.node
        for entry in node.device_configurations
    ]
    assert said == [(0, [[0]]), (0, [[0]]), (1, [[1]]), (1, [[1]])]
    with pytest.raises(ModelError, match="need 11"):
        device_proto(Model.from_proto(_model()))


def test_wrong_cuts_are_errors() -> None:
    for options, message in (
        ({"sharding": ["nope=0"]}, "no node 'nope'"),
        ({"sharding": ["a"]}, "node=device"),
        ({"pipelining": ["a=first"]}, "whole number"),
    ):
        with pytest.raises(UsageError, match=message):
            get_pass("rewrite_annotated_ops", **options)(_model())
    of = Model.from_proto(_model(9))
    with pytest.raises(ModelError, match="IR version 9"):
        mark_devices(of, {"a": "0"})


def test_without_options_there_is_nothing_to_do() -> None:
    assert_unchanged("rewrite_annotated_ops", TEXT)


def test_the_alias_of_poprt() -> None:
    with PassContext():
        assert get_pass("ManualSharding").name == "rewrite_annotated_ops"


def test_nodes_between_nodes_of_one_device_are_on_it() -> None:
    """b is between a and c; y has no consumer, so it gets the fallback."""
    model = Model.from_proto(_model())
    a, _, c, _ = model.main.nodes
    for node in (a, c):
        model.main.set_metadata(node, {"tiered.device": "npu"})
    marked = model.to_proto()
    pass_ = get_pass("rewrite_annotated_ops", fallback_device="cpu", propagate=True)
    made = pass_(marked)
    assert marks(made.graph, "tiered.device") == ["npu", "npu", "npu", "cpu"]
    assert pass_(made) == made
    plain = get_pass("rewrite_annotated_ops", propagate=True)
    assert marks(plain(marked).graph, "tiered.device") == ["npu", "npu", "npu", None]


def test_nodes_between_two_devices_get_the_fallback() -> None:
    model = Model.from_proto(_model())
    for node, device in zip(model.main.nodes, ("npu", "", "gpu", ""), strict=True):
        if device:
            model.main.set_metadata(node, {"tiered.device": device})
    pass_ = get_pass("rewrite_annotated_ops", fallback_device="cpu", propagate=True)
    made = pass_(model.to_proto())
    assert marks(made.graph, "tiered.device") == ["npu", "cpu", "gpu", "cpu"]
