"""The first forms of operators, of opsets 1 to 6, and what they can and cannot say."""

from typing import Any, Final

import onnx
import pytest

from tests.graph.opset.texts import at
from tiered import Model, Node, PassContext, get_pass
from tiered.graph.opset.adapter import NoEquivalentForm
from tiered.graph.opset.conversion import form_between
from tiered.support.errors import OpsetError
from tiered.testing import parse


def moved(text: str, before: int, after: int, **attributes: Any) -> Node:
    """Convert a model of one node, with attributes of its own opset; return the last node."""
    proto = parse(at(before, text))
    proto.graph.node[0].attribute.extend(
        onnx.helper.make_attribute(key, value) for key, value in attributes.items()
    )
    of = Model.from_proto(proto)
    get_pass("convert_opset", to=after).apply(of, PassContext.isolated())
    return of.main.nodes[-1]


def slope(x: str, sizes: str, numbers: str) -> str:
    return (
        f"(float[{x}] x) => (float[{x}] y) <float[{sizes}] s = {{{numbers}}}> {{ y = PRelu(x, s) }}"
    )


@pytest.mark.parametrize(
    ("x", "sizes", "numbers"),
    [("2,3,4,4", "1", "0.5"), ("2,3", "3", "1, 2, 3"), ("2,3", "1", "0.5")],
)
@pytest.mark.parametrize(("before", "after"), [(6, 7), (7, 6)])
def test_a_slope_for_all_or_for_the_columns_of_a_matrix_is_the_same_in_both_forms(
    x: str, sizes: str, numbers: str, before: int, after: int
) -> None:
    assert moved(slope(x, sizes, numbers), before, after).op_type == "PRelu"


@pytest.mark.parametrize(
    ("x", "sizes", "numbers"),
    [
        ("2,3,4,3", "3", "1, 2, 3"),  # of the last axis since 7
        ("2,3,4,4", "3,1,1", "1, 2, 3"),
        ("2,3", "2,1", "1, 2"),
    ],
)
def test_another_slope_blocks_before_7(x: str, sizes: str, numbers: str) -> None:
    with pytest.raises(OpsetError, match="has a slope for each channel"):
        moved(slope(x, sizes, numbers), 7, 6)


def test_a_slope_for_each_channel_gets_the_axes_behind_it() -> None:
    node = moved(slope("2,3,4,3", "3", "1, 2, 3"), 6, 7)
    read = node.input(1)
    assert read is not None
    assert read.shape == (3, 1, 1)


ADD = "(float[{x}] x, float[{z}] z) => (float[{x}] y) {{ y = Add(x, z) }}"


@pytest.mark.parametrize(
    ("x", "z", "said"),
    [("2,3", "2,3", None), ("2,3", "3", 1), ("4,2,3", "2,3", 1), ("2,3", "", 1)],
)
def test_the_last_dims_are_broadcast_where_it_is_said(x: str, z: str, said: int | None) -> None:
    node = moved(ADD.format(x=x, z=z).replace("float[]", "float"), 7, 6)
    written = {each.name: each.i for each in node.proto.attribute}
    assert written.get("broadcast") == said


@pytest.mark.parametrize(("x", "z"), [("2,3", "2,1"), ("2,3", "1"), ("2,N", "M"), ("3", "2,3")])
def test_other_broadcasts_block(x: str, z: str) -> None:
    text = ADD.format(x=x, z=z).replace(f"(float[{x}] y)", "(float[A,B] y)")
    with pytest.raises(OpsetError, match="broadcasts more than the last dims"):
        moved(text, 7, 6)


@pytest.mark.parametrize(
    ("z", "axis"), [("2,3", 0), ("3", 1), ("", 0)], ids=["all", "the last", "a scalar"]
)
def test_an_axis_that_counts_from_the_last_dim_goes(z: str, axis: int) -> None:
    text = ADD.format(x="2,3", z=z).replace("float[]", "float")
    node = moved(text, 6, 7, broadcast=1, axis=axis)
    assert list(node.proto.attribute) == []


def test_an_axis_in_front_of_others_becomes_dims_of_1_behind() -> None:
    node = moved(ADD.format(x="3,2", z="3"), 6, 7, broadcast=1, axis=0)
    read = node.input(1)
    assert read is not None
    assert read.shape == (3, 1)


GEMM = "(float[2,3] x, float[3,4] w, float[{z}] b) => (float[2,4] y) {{ y = Gemm(x, w, b) }}"


@pytest.mark.parametrize(("z", "to"), [("4", 6), ("1", 5), ("2,4", 6), ("1,4", 6)])
def test_a_bias_is_said_to_be_broadcast(z: str, to: int) -> None:
    assert moved(GEMM.format(z=z), 7, to).attr("broadcast") == 1


def test_a_bias_of_a_matrix_blocks_before_6() -> None:
    with pytest.raises(OpsetError, match="needs a bias of a known rank"):
        moved(GEMM.format(z="1,4"), 7, 5)


UPSAMPLE = "(float[1,1,2,2] x) => (float[A,B,C,D] y) {{ y = Upsample<{}>(x) }}"


@pytest.mark.parametrize("before", [7, 8])
def test_scales_of_images_have_names_of_their_own(before: int) -> None:
    text = UPSAMPLE.format('mode = "linear", scales = [1.0, 1.0, 2.0, 3.0]')
    node = moved(text, before, 6)
    assert [node.attr(key) for key in ("height_scale", "width_scale", "mode")] == [2, 3, "bilinear"]


@pytest.mark.parametrize("scales", ["2.0, 1.0, 2.0, 3.0", "1.0, 2.0, 2.0, 3.0"])
def test_scales_of_other_axes_block(scales: str) -> None:
    with pytest.raises(OpsetError, match="scales height and width of images alone"):
        moved(UPSAMPLE.format(f"scales = [{scales}]"), 7, 6)


STOCK: Final = """(float[2,3] x, float[3] z, float s, float16[2,3] h, float[1,1,2,2] m,
    float[3,4] w, float[4] b, int64[2] sizes, float[5,2,3] seq, float[1,9,3] gw, float[1,9,3] gr,
    int64[Q] q, float[?,3] open) => (float[A] y) <float two={2}, float one={1}, float back={-2}, float far={2},
    float less={-3}, int64[2] parts={1,2}, float[2] pair={1,1}> { r = vendor.F(x)"""
"""r has an unknown rank."""

FORMS: Final[dict[tuple[str, int, int], dict[str, Any] | str]] = {
    # The attributes at the second opset, or why there is no form.
    ("Abs<consumed_inputs=[0]>(x)", 5, 6): {},
    ("Min<consumed_inputs=[0,0]>(x,x)", 5, 6): {},
    ("Abs(x)", 6, 5): {},
    ("Add<broadcast=1,axis=0>(x,z)", 6, 7): "broadcasts along axis 0",
    ("Add<broadcast=1,axis=1>(x,z)", 6, 7): {},
    ("Add<broadcast=0,axis=0>(x,x)", 6, 7): {},
    ("Add<broadcast=1>(x,z)", 6, 7): {},
    ("Add<broadcast=1,axis=0>(x,s)", 6, 7): {},
    ("Add<broadcast=1,axis=1>(r,z)", 6, 7): "along an axis, and a rank is not known",
    ("Add<broadcast=1,axis=1>(x,r)", 6, 7): "along an axis, and a rank is not known",
    ("Add(r,z)", 7, 6): "broadcasts, and a shape is not known",
    ("Add(x,r)", 7, 6): "broadcasts, and a shape is not known",
    ("Gemm<broadcast=1>(x,w,b)", 6, 7): {},
    ("Gemm(x,w,r)", 7, 6): "needs a bias of a known rank",
    ("PRelu(x,r)", 6, 7): "has a slope for each channel, and its rank is not known",
    ("PRelu(x,r)", 7, 6): "has a slope for each channel before opset 7",
    ("PRelu(r,z)", 6, 7): "has a slope for each channel",
    ('Cast<to="FLOAT">(x)', 5, 6): {"to": 1},
    ('Cast<to="NONSENSE">(x)', 5, 6): "casts to 'NONSENSE', which is no name of a dtype",
    ("Cast<to=1>(x)", 6, 5): {"to": "FLOAT"},
    ("Pad<paddings=[0,1,0,1]>(x)", 1, 2): {"pads": (0, 1, 0, 1)},
    ("Pad<pads=[0,1,0,1]>(x)", 2, 1): {"paddings": (0, 1, 0, 1)},
    ('Upsample<height_scale=2.0,width_scale=3.0,mode="bilinear">(m)', 6, 7): {
        "scales": [1.0, 1.0, 2.0, 3.0], "mode": "linear",
    },
    ('Upsample<height_scale=2.0,width_scale=3.0,mode="nearest">(m)', 6, 7): {
        "scales": [1.0, 1.0, 2.0, 3.0], "mode": "nearest",
    },
    ('Upsample<scales=[1.0,1.0,2.0,3.0],mode="nearest">(m)', 7, 6): {
        "height_scale": 2.0, "width_scale": 3.0, "mode": "nearest",
    },
    ("Upsample<scales=[1.0,2.0,3.0]>(m)", 7, 6): "scales height and width of images alone",
    ("Tile(x,two,far)", 5, 6): "has no such axis",
    ("Tile(x,two,less)", 5, 6): "has no such axis",
    ("Tile(x,s,one)", 5, 6): "needs constant tiles and axis, and a known rank",
    ("Tile(x,two,s)", 5, 6): "needs constant tiles and axis, and a known rank",
    ("Tile(r,two,one)", 5, 6): "needs constant tiles and axis, and a known rank",
    ("Tile(x,pair,one)", 5, 6): "needs constant tiles and axis, and a known rank",
    ("Tile(x,two,pair)", 5, 6): "needs constant tiles and axis, and a known rank",
    ("Tile(x,parts)", 6, 5): "repeats along one axis",
    ("Split(x)", 1, 2): "has no default axis",
    ("Split<axis=1>(x)", 1, 2): {"axis": 1},
    ("Split<axis=1>(x,parts)", 1, 2): {"axis": 1, "split": [1, 2]},
    ("Split<axis=1>(x,sizes)", 1, 2): "needs constant sizes",
    ("Split<axis=1,split=[1,2]>(x)", 1, 2): {"axis": 1, "split": (1, 2)},
    ("Split(x)", 2, 1): {"axis": 0},
    ("Dropout<is_test=1>(x)", 6, 7): {},
    ("Dropout<is_test=0>(x)", 6, 7): "trains without is_test=1",
    ("Dropout(x)", 6, 7): "trains without is_test=1",
    ("Dropout(x)", 7, 6): {"is_test": 1},
    ("BatchNormalization<is_test=1>(m,pair,pair,pair,pair)", 6, 7): {},
    ("BatchNormalization(m,pair,pair,pair,pair)", 6, 7): "trains without is_test=1",
    ("Concat(x,x)", 3, 4): {"axis": 1},
    ("Concat<axis=0>(x,x)", 3, 4): {"axis": 0},
    ("Concat<axis=0>(x,x)", 4, 3): {"axis": 0},
    ("Selu(x)", 5, 6): {"alpha": 1.6732, "gamma": 1.0507},
    ("Selu<alpha=1.0>(x)", 5, 6): {"alpha": 1.0, "gamma": 1.0507},
    ("Selu(x)", 6, 5): {"alpha": 1.6732631921768188, "gamma": 1.0507010221481323},
    ("Clip(x)", 5, 6): {},
    ("Clip(h)", 5, 6): "without min has that of its dtype",
    ("Clip<min=0.0>(h)", 5, 6): "without max has that of its dtype",
    ("Clip(h)", 6, 5): "without min has that of its dtype",
    ("LpPool<kernel_shape=[2,2],p=2.0>(m)", 1, 2): {"kernel_shape": (2, 2), "p": 2},
    ("LpPool<kernel_shape=[2,2],p=1.5>(m)", 1, 2): "has a whole p since opset 2",
    ("LpPool<kernel_shape=[2,2]>(m)", 1, 2): {"kernel_shape": (2, 2)},
    ("LpPool<kernel_shape=[2,2],p=2>(m)", 2, 1): {"kernel_shape": (2, 2), "p": 2.0},
    ("GlobalLpPool<p=3.0>(m)", 1, 2): {"p": 3},
    ('GRU<hidden_size=3,direction="foward">(seq,gw,gr)', 1, 3): {
        "hidden_size": 3, "direction": "forward",
    },
    ('GRU<hidden_size=3,direction="reverse">(seq,gw,gr)', 1, 3): {
        "hidden_size": 3, "direction": "reverse",
    },
    ("GRU<hidden_size=3>(seq,gw,gr)", 3, 1): {"hidden_size": 3, "direction": "forward"},
    ("GRU<hidden_size=3,output_sequence=1>(seq,gw,gr)", 6, 7): {"hidden_size": 3},
    ("GRU<hidden_size=3>(seq,gw,gr)", 7, 6): {"hidden_size": 3, "output_sequence": 1},
    ("Reshape<shape=[3,2]>(x)", 4, 5): {},
    ("Reshape(x,parts)", 5, 4): {"shape": [1, 2]},
    ("Reshape(x,q)", 5, 4): "needs a constant shape before opset 5",
    ('Add<axis=0>(x,r)', 6, 7): {},
    ('Add(open,open)', 7, 6): {},
    ('Add(open,x)', 7, 6): 'Add broadcasts more than the last dims of its first operand (opset 6)',
    ('Add(x,open)', 7, 6): 'Add broadcasts more than the last dims of its first operand (opset 6)',
    ('Add(open,z)', 7, 6): {'broadcast': 1},
    ('Add(x,s)', 7, 6): {'broadcast': 1},
    ('Add(z,x)', 7, 6): 'Add broadcasts more than the last dims of its first operand (opset 6)',
    ('Add(x,z)', 7, 6): {'broadcast': 1},
    ('Add(x,x)', 7, 6): {},
    ('Gemm(x,w,b)', 7, 6): {'broadcast': 1},
    ('Gemm(x,w,s)', 7, 6): {'broadcast': 1},
    ('Gemm(x,w,x)', 7, 6): {'broadcast': 1},
    ('Gemm(x,w,x)', 7, 5): 'Gemm needs a bias of a known rank (opset 5)',
    ('Gemm(x,w,b)', 7, 5): {'broadcast': 1},
    ('PRelu(x,z)', 7, 6): {},
    ('PRelu(x,z)', 6, 7): {},
    ('PRelu(seq,z)', 6, 7): 'PRelu has a slope for each channel (opset 6)',
    ('PRelu(x,s)', 6, 7): {},
    ('Upsample<scales=[1.0,1.0],mode="nearest">(m)', 7, 6): 'Upsample scales height and width of images alone (opset 6)',
    ('Upsample<scales=[1.0,1.0,2.0,2.0,1.0],mode="nearest">(m)', 7, 6): 'Upsample scales height and width of images alone (opset 6)',
    ('Upsample<scales=[2.0,1.0,2.0,3.0],mode="linear">(m)', 7, 6): 'Upsample scales height and width of images alone (opset 6)',
    ('Upsample<scales=[1.0,1.0,2.0,3.0],mode="linear">(m)', 7, 6): {'height_scale': 2.0, 'mode': 'bilinear', 'width_scale': 3.0},
    ('Upsample<scales=[1.0,1.0,2.0,3.0]>(m)', 7, 6): {'height_scale': 2.0, 'width_scale': 3.0},
}  # fmt: skip


def early(call: str, opset: int) -> Node:
    header = f'<ir_version: 8, opset_import: ["": {opset}, "vendor": 1]> g'
    results = "y, y2" if call.startswith(("GRU", "Split")) else "y"
    return Model.from_proto(parse(f"{header} {STOCK} {results} = {call} }}")).main.nodes[-1]


def test_each_early_form_is_converted_or_declined() -> None:
    for (call, before, after), expected in FORMS.items():
        node = early(call, before)
        if isinstance(expected, str):
            with pytest.raises(NoEquivalentForm) as caught:
                form_between(node, before, after)
            assert expected in str(caught.value), call
            continue
        form = form_between(node, before, after)
        assert form is not None
        assert repr(dict(sorted(form.attributes.items()))) == repr(
            dict(sorted(expected.items()))
        ), call


@pytest.mark.parametrize(
    ("call", "before", "operand"),
    [
        ("Tile(x,two,one)", 5, [1, 2]),
        ("Tile(x,two,back)", 5, [2, 1]),
        ("Reshape<shape=[3,2]>(x)", 4, [3, 2]),
    ],
)
def test_what_became_an_operand_is_one(call: str, before: int, operand: list[int]) -> None:
    form = form_between(early(call, before), before, before + 1)
    assert form is not None
    assert len(form.operands) == 2
    added = form.operands[1]
    assert added is not None
    assert added.default is not None
    assert added.default.numpy().tolist() == operand
