"""Propagations that follow from axis maps alone, of an operator of a user."""

from collections.abc import Iterator

import pytest

from tests.analysis.layout.test_rules import write_in_order
from tests.registered import rules_forgotten
from tiered import Model, Node, Skip, TensorType, get_pass, register_type_rule
from tiered.analysis.axes.axis_map import AXES, AxisMap, IteratorKind, NoMap, WindowSteps, whole
from tiered.analysis.layout import derived as module
from tiered.analysis.layout.axis_propagation import KernelAccess
from tiered.analysis.layout.derived import (
    _elementwise,
    combined,
    derived,
    elementwise,
    named,
    write_as_it_is,
)
from tiered.analysis.layout.rules import propagation_of
from tiered.graph.queries.determinism import DETERMINISTIC
from tiered.testing import parse

DOMAIN = "own.derived"
IN_ORDER = ["Transpose", "Wave", "Transpose"]


@pytest.fixture(autouse=True)
def wave() -> Iterator[None]:
    def type_of(node: Node) -> TensorType | None:
        kind = node.inputs[0].type if node.inputs[0] is not None else None
        return kind if isinstance(kind, TensorType) else None

    with rules_forgotten():
        register_type_rule("Wave", DOMAIN, type_of)
        DETERMINISTIC.put(["Wave"], DOMAIN, "it is a product")
        yield


def converted(operands: str = "a", constants: str = "") -> Model:
    """Return a model with the operator between two Transposes, after layouts are converted."""
    model = Model.from_proto(
        parse(
            f'<ir_version: 10, opset_import: ["" : 21, "{DOMAIN}" : 1]> '
            f"g (float[2,3,4,5] x) => (float[2,3,4,5] y) {constants} "
            "{ a = Transpose<perm=[0,2,3,1]>(x) "
            f"b = {DOMAIN}.Wave({operands}) y = Transpose<perm=[0,3,1,2]>(b) }}"
        )
    )
    get_pass("convert_layout").apply(model)
    return model


def ops(model: Model) -> list[str]:
    return [node.op_type for node in model.main.topological_order()]


@pytest.mark.parametrize(
    ("kinds", "passes"),
    [({}, True), ({3: IteratorKind.REDUCTION}, False), ({0: IteratorKind.OPAQUE}, False)],
)
def test_what_computes_element_by_element_needs_no_rule(
    kinds: dict[int, IteratorKind], passes: bool
) -> None:
    AXES.rule("Wave", domain=DOMAIN)(lambda node: AxisMap((whole(4),), (whole(4),), kinds))
    assert ops(converted()) == (["Wave"] if passes else IN_ORDER)


def test_what_may_draw_random_numbers_keeps_its_order() -> None:
    AXES.rule("Wave", domain=DOMAIN)(lambda node: AxisMap((whole(4),), (whole(4),)))
    assert ops(converted()) == ["Wave"]
    DETERMINISTIC.remove("Wave", DOMAIN)
    assert ops(converted()) == IN_ORDER


@pytest.mark.parametrize("broadcasts", [(), (1,)])
def test_an_operand_of_fewer_axes_has_them_at_a_place_unless_it_broadcasts(
    broadcasts: tuple[int, ...],
) -> None:
    def axes(node: Node) -> AxisMap:
        return AxisMap((whole(4), (3,)), (whole(4),), broadcasts=broadcasts)

    AXES.rule("Wave", domain=DOMAIN)(axes)
    model = converted("a, s", "<float[3] s = {1,2,3}>")
    assert ops(model) == (["Wave"] if broadcasts else IN_ORDER)
    if broadcasts:
        scale = next(node for node in model.main.nodes if node.op_type == "Wave").inputs[1]
        assert scale is not None
        assert scale.shape == (3, 1, 1)


def test_a_result_with_other_axes_keeps_their_order() -> None:
    turned = (3, 0, 1, 2)
    AXES.rule("Wave", domain=DOMAIN)(lambda node: AxisMap((whole(4),), (turned,)))
    assert ops(converted()) == IN_ORDER


def test_the_reason_of_a_map_is_that_of_a_propagation() -> None:
    def axes(node: Node) -> AxisMap:
        raise NoMap("its moon is not known")

    AXES.rule("Wave", domain=DOMAIN)(axes)
    node = next(node for node in converted().main.nodes if node.op_type == "Wave")
    found = propagation_of(node)
    assert isinstance(found, Skip)
    assert str(found) == "its moon is not known"


def test_an_axis_without_an_iterator_gets_a_label_of_its_own() -> None:
    labels = named(((0, None, 1), None, (None,)))
    assert labels[1] is None
    made = [label for own in (labels[0] or (), labels[2] or ()) for label in own]
    assert len(set(made)) == 4
    assert (made[0], made[2]) == (0, 1)


def test_axes_that_are_not_parallel_are_combined() -> None:
    axes = AxisMap(
        ((0, None, 1, 2),), ((0, 2),), {1: IteratorKind.REDUCTION, 2: IteratorKind.OPAQUE}
    )
    assert combined(axes) == (1, 2)


def node_of(text: str) -> Node:
    nodes = Model.from_proto(parse(text)).main.nodes
    return next(node for node in nodes if node.op_type != "Constant")


def test_what_a_propagation_takes_of_an_axis_map() -> None:
    node = node_of("(float[2,3,4] x, float[3] s) => (y) { y = InstanceNormalization(x, s, s) }")
    every, some = derived(node, write_as_it_is), derived(node, write_as_it_is, slots=(0, 2))
    assert every.inputs == ((0, 1, 2), (1,), (1,))
    assert some.inputs == ((0, 1, 2), None, (1,))
    assert every.kernel is some.kernel is None
    axes = AxisMap(((2, 1, 0), None, None), ((2, 1, 0),), {1: IteratorKind.OPAQUE})
    own = derived(node, write_as_it_is, axes, family="norm")
    assert (own.inputs, own.kernel) == (((2, 1, 0), None, None), KernelAccess("norm", (1,)))
    assert derived(node, write_as_it_is, axes, family="norm", walked=(0,)).kernel == KernelAccess(
        "norm", (0,)
    )


def test_axes_that_are_not_parallel_are_mixed_or_of_windows() -> None:
    for inputs, kinds, windows, expected in (
        (((0, 1, 2),), {1: IteratorKind.OPAQUE}, {2: WindowSteps()}, (1, 2)),
        (((0, None, 2),), {2: IteratorKind.REDUCTION}, {}, (2,)),
        (((0, 1),), {5: IteratorKind.REDUCTION}, {}, ()),
        ((None, (0, 1)), {0: IteratorKind.REDUCTION}, {}, ()),
    ):
        assert combined(AxisMap(inputs, ((0,),), kinds, windows)) == expected, inputs


def test_an_elementwise_operator_has_its_axes_at_the_same_places() -> None:
    whole3 = (0, 1, 2)
    for inputs, outputs, broadcasts, is_free in (
        ((whole3,), (whole3,), (), True),
        ((whole3, None), (whole3, whole3), (), True),
        ((whole3, (1, 2)), (whole3,), (1,), True),
        ((whole3, (1, 2)), (whole3,), (0,), False),
        ((whole3, (0, 1)), (whole3,), (1,), False),
        ((whole3, (2, 1)), (whole3,), (1,), False),
        (((1, 0, 2),), (whole3,), (), False),
        ((whole3,), (None,), (), False),
        ((whole3,), ((0, None, 2),), (), False),
        ((whole3,), (whole3, (0, 1)), (), False),
    ):
        found = _elementwise(inputs, outputs, broadcasts, len(inputs))
        assert isinstance(found, Skip) is not is_free, (inputs, outputs, broadcasts)
        if not isinstance(found, Skip):
            kernel = KernelAccess("broadcast") if broadcasts else None
            assert (found.inputs, found.outputs, found.kernel) == (inputs, outputs, kernel)


def test_an_operator_of_windows_or_groups_is_not_elementwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node = node_of("(float[2,3] x) => (y) { y = Relu(x) }")
    plain = AxisMap(((0, 1),), ((0, 1),))
    for axes, is_free in (
        (plain, True),
        (plain._replace(kinds={0: IteratorKind.OPAQUE}), False),
        (plain._replace(windows={0: WindowSteps()}), False),
        (plain._replace(groups=(((0,), (0,)),)), False),
        (plain._replace(has_shape=True), False),
    ):
        monkeypatch.setattr(module, "map_of", lambda _, axes=axes: axes)
        assert isinstance(elementwise(node), Skip) is not is_free, axes


def test_a_vector_has_a_number_for_each_axis_in_the_new_order() -> None:
    node = node_of("(float[2,3] x) => (y) <int64[2] r = {1,4}> { y = Tile(x, r) }")
    found = propagation_of(node)
    assert not isinstance(found, Skip)
    model = node.owner.model
    write_in_order(node, found, (1, 0))
    (made,) = (each for each in model.main.nodes if each.op_type == "Tile")
    repeats = made.const(1)
    assert repeats is not None
    assert (repeats.tolist(), made.given(0).shape) == ([4, 1], (3, 2))
