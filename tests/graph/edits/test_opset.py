"""What a change of the opset does to the parts of a model that are not its main graph."""

import onnx
import pytest

from tests.small import proto
from tiered import Model, PassContext, get_pass
from tiered.support.errors import OpsetError


def trained(op_type: str, domain: str = "") -> Model:
    """Return a model that is trained by one node, which the view leaves alone."""
    made = proto("g (float[2] x) => (float[2] y) { y = Neg(x) }")
    made.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
    algorithm = made.training_info.add().algorithm
    algorithm.node.append(onnx.helper.make_node(op_type, ["y"], ["g"], "step", domain=domain))
    return Model.from_proto(made)


def convert(of: Model, to: int) -> None:
    get_pass("convert_opset", to=to).apply(of, PassContext.isolated())


@pytest.mark.parametrize(
    ("op_type", "domain", "to"),
    [
        ("Neg", "", 20),  # as it was since opset 13
        ("Relu", "", 14),
        ("Neg", "com.microsoft", 12),
        ("FusedMatMul", "com.microsoft", 12),
        ("Unheard", "", 20),
    ],
)
def test_a_training_node_that_means_the_same_stays(op_type: str, domain: str, to: int) -> None:
    of = trained(op_type, domain)
    convert(of, to)
    assert of.main.opset() == to
    assert [node.op_type for node in of.training_nodes()] == [op_type]


@pytest.mark.parametrize(("op_type", "to"), [("Neg", 12), ("Gelu", 19), ("Cast", 18)])
def test_a_training_node_that_would_change_blocks(op_type: str, to: int) -> None:
    of = trained(op_type)
    with pytest.raises(OpsetError, match="a node of training_info is not converted") as caught:
        convert(of, to)
    assert [(each.node, each.operator) for each in caught.value.blocked] == [("step", op_type)]
    assert of.main.opset() == 21
