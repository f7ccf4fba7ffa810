"""A profile: its parts, their shares, and what a reader should know."""

import json
from dataclasses import replace

import pytest

from tests.extensions.measurement.profile.timed import profile_of, timed
from tiered.extensions.measurement.profile.kernel_events import Shape
from tiered.extensions.measurement.profile.model_profile import Machine, ProfilePart


def test_what_onnxruntime_inserted_has_its_share() -> None:
    model = profile_of(
        timed("a", seconds=3.0), timed("t", "Transpose", seconds=1.0, is_inserted=True)
    )
    (part,) = model.inserted
    assert (part.name, part.count, part.share) == ("Transpose", 1, 0.25)
    assert "onnxruntime inserted 1 Transpose: 25.0% of the time" in model.remarks
    assert "the names of nodes have no layers, nor has their metadata" in model.remarks


def test_the_least_time_is_that_of_the_slower_of_both() -> None:
    machine = Machine(1e9, 1e8)
    assert machine.least(2_000_000, 1_000) == pytest.approx(2e-3)
    assert machine.least(1_000, 1_000_000) == pytest.approx(1e-2)


def test_parts_are_the_slowest_first_and_equal_ones_by_name() -> None:
    model = profile_of(
        timed("a", "Neg"), timed("b", "Exp", 0.5), timed("c", "Exp", 0.5), timed("d", "Mul", 2.0)
    )
    assert model.operators == (
        ProfilePart("Mul", 1, 2.0, 0.5), ProfilePart("Exp", 2, 1.0, 0.25),
        ProfilePart("Neg", 1, 1.0, 0.25)
    )  # fmt: skip
    assert [node.name for node in model.slowest] == ["d", "a", "b", "c"]


def test_layers_are_cut_to_a_depth() -> None:
    model = profile_of(timed("a", layer=("m", "one")), timed("b", layer=("m", "two")), timed("c"))
    assert model.depth == 2
    assert [(part.name, part.count) for part in model.layers()] == [
        ("(no layer)", 1), ("m/one", 1), ("m/two", 1)
    ]  # fmt: skip
    assert [(part.name, part.count) for part in model.layers(1)] == [("m", 2), ("(no layer)", 1)]


def test_nodes_without_time_have_no_share() -> None:
    model = profile_of(timed("a", seconds=0.0))
    assert model.share(1.0) == 0.0
    assert [part.share for part in model.operators] == [0.0]
    assert profile_of().operators == profile_of().inserted == ()
    assert profile_of().remarks == ()


@pytest.mark.parametrize(("seconds", "said"), [(1.1, False), (1.25, True)])
def test_time_outside_of_nodes_is_reported_from_a_tenth(seconds: float, *, said: bool) -> None:
    model = replace(profile_of(timed("a", layer=("m",))), seconds=seconds, notes=("a note",))
    remark = "20% of a run is outside of nodes: what onnxruntime does around each, and the profile"
    assert model.remarks == (("a note", f"{remark} itself") if said else ("a note",))


def test_the_shapes_of_a_node_are_text() -> None:
    node = replace(timed("a"), outputs=(Shape("int64", ()), Shape("float", (2, 3))))
    assert node.shapes == "float[2] -> int64[], float[2,3]"


def test_all_of_it_is_json() -> None:
    model = profile_of(timed("a", layer=("m",), outputs=("y",), origins=("p",), is_inserted=True))
    found = json.loads(json.dumps(replace(model, machine=Machine(2.0, 3.0)).to_dict()))
    assert found["machine"] == {"multiply_adds_per_second": 2.0, "bytes_per_second": 3.0}
    assert found["operators"] == [{"name": "Add", "nodes": 1, "seconds": 1.0, "share": 1.0}]
    assert found["operators"] == found["inserted"]
    (node,) = found["nodes"]
    assert (node["layer"], node["tensors"], node["origins"]) == (["m"], ["y"], ["p"])
    assert (node["inserted"], node["least_seconds"], node["share"]) == (True, None, 1.0)
    assert model.to_dict()["machine"] is None
