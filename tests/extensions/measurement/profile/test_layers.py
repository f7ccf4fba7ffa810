"""The layer of a node: its metadata, its name, or the name of an output."""

import onnx

from tiered.extensions.measurement.profile.layers import depth_for, layer_of, text_of


def test_the_metadata_of_an_exporter_decide_the_layer() -> None:
    node = onnx.NodeProto(name="/other/Add")
    scopes = "['', 'm', 'm.vit', 'm.vit.layers.0', 'add']; ['', 'm', 'add_1']"
    node.metadata_props.add(key="pkg.torch.onnx.name_scopes", value=scopes)
    assert layer_of(node) == ("m", "vit", "layers", "0")
    node.metadata_props[0].value = "no list"
    assert layer_of(node) == ()


def test_a_path_in_the_name_or_of_an_output_is_the_layer() -> None:
    assert layer_of(onnx.NodeProto(name="/m/layers.0/MatMul")) == ("m", "layers.0")
    assert layer_of(onnx.NodeProto(name="token_3"), ["/m/head/Add_output_0"]) == ("m", "head")
    assert layer_of(onnx.NodeProto(name="Add_7"), ["y"]) == ()
    assert layer_of(None) == ()


def test_the_depth_makes_few_layers() -> None:
    paths = [("m", f"layer.{at}", part) for at in range(8) for part in ("q", "k", "v")]
    assert depth_for(paths) == 3
    assert depth_for(paths, 10) == 2
    assert depth_for(paths, 2) == 1
    assert depth_for([()]) == 1
    assert text_of(()) == "(no layer)"
    for most, depth in ((24, 3), (23, 2), (8, 2), (7, 1), (1, 1)):
        assert depth_for(paths, most) == depth
