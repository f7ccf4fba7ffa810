"""Layout rules of custom operators, registered from outside."""

from collections.abc import Iterator

import pytest

from tiered import (
    AxisPropagation,
    Model,
    Node,
    Skip,
    TensorType,
    get_pass,
    layout_rule,
    register_type_rule,
)
from tiered.analysis.layout.rules import LAYOUTS
from tiered.graph.shape_inference.rules.shape_rule import unregister_type_rule
from tiered.support.errors import UsageError
from tiered.testing import assert_unchanged, parse

DOMAIN = "own.layout"
TEXT = (
    f'<ir_version: 10, opset_import: ["" : 21, "{DOMAIN}" : 1]> '
    "g (float[2,3,4,5] x) => (float[2,3,4,5] y) { a = Transpose<perm=[0,2,3,1]>(x) "
    f"b = {DOMAIN}.Wave(a) y = Transpose<perm=[0,3,1,2]>(b) }}"
)


@pytest.fixture
def wave() -> Iterator[None]:
    def type_of(node: Node) -> TensorType | None:
        kind = node.inputs[0].type if node.inputs[0] is not None else None
        return kind if isinstance(kind, TensorType) else None

    register_type_rule("Wave", DOMAIN, type_of)
    yield
    unregister_type_rule("Wave", DOMAIN)
    LAYOUTS.remove("Wave", DOMAIN)


def operators() -> list[str]:
    model = Model.from_proto(parse(TEXT))
    get_pass("convert_layout").apply(model)
    return [node.op_type for node in model.main.topological_order()]


@pytest.mark.usefixtures("wave")
def test_a_registered_operator_passes_permutations() -> None:
    assert operators() == ["Transpose", "Wave", "Transpose"]

    @layout_rule("Wave", domain=DOMAIN)
    def rule(node: Node) -> AxisPropagation | Skip:
        rank = None if node.inputs[0] is None else node.inputs[0].rank
        if rank is None:
            return Skip("its rank is not known")
        labels = tuple(range(rank))
        return AxisPropagation((labels,), (labels,), lambda op: op.emit({0: op.operand(0)}))

    assert operators() == ["Wave"]
    with pytest.raises(UsageError, match=f"there is a layout rule for {DOMAIN}::Wave already"):
        layout_rule("Wave", domain=DOMAIN)(lambda node: Skip("no"))


def scale(node: Node) -> AxisPropagation | Skip:
    rank = None if node.inputs[0] is None else node.inputs[0].rank
    if rank is None:
        return Skip("its rank is not known")
    labels = tuple(range(rank))
    return AxisPropagation((labels,), (labels,), lambda op: op.emit({0: op.operand(0)}))


@pytest.fixture
def rule() -> Iterator[None]:
    layout_rule("Scale", domain=DOMAIN)(scale)
    yield
    LAYOUTS.remove("Scale", DOMAIN)


@pytest.mark.usefixtures("rule")
@pytest.mark.parametrize("desired", [{}, {"Conv": "NHWC"}])
def test_a_result_of_unknown_type_ends(desired: dict[str, str]) -> None:
    text = (
        f'<ir_version: 10, opset_import: ["" : 21, "{DOMAIN}" : 1]> '
        "g (float[2,3,4,5] x) => (float[2,5,3,4] y) { a = Transpose<perm=[0,3,1,2]>(x) "
        f"b = {DOMAIN}.Scale(a) y = Relu(b) }}"
    )
    assert_unchanged("convert_layout", text, desired_layouts=desired)


@pytest.mark.usefixtures("rule")
def test_an_operator_with_a_local_function_has_its_rule() -> None:
    proto = parse(
        f'<ir_version: 10, opset_import: ["" : 21, "{DOMAIN}" : 1]> '
        "g (float[2,3,4,5] x) => (float[2,3,4,5] y) { a = Transpose<perm=[0,2,3,1]>(x) "
        f"b = {DOMAIN}.Scale(a) y = Transpose<perm=[0,3,1,2]>(b) }} "
        f'<domain: "{DOMAIN}", opset_import: ["" : 21]> Scale (x) => (y) {{ y = Neg(x) }}'
    )
    model = Model.from_proto(proto)
    get_pass("convert_layout").apply(model)
    assert [node.op_type for node in model.main.topological_order()] == ["Scale"]


def test_operators_of_onnx_have_their_rules() -> None:
    with pytest.raises(UsageError, match="there is a layout rule for Concat already"):
        layout_rule("Concat", domain="")(lambda node: Skip("no"))
    with pytest.raises(UsageError, match="takes names of operators"):
        layout_rule(domain=DOMAIN)
