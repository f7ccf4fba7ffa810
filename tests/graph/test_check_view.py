"""The invariants of the view are proved on demand, and after each pass with `debug.check_view`."""

import pytest

from tests.small import RELUS, model
from tiered import Graph, PassContext, PassError, TensorType, function_pass


@function_pass(opt_level=0, name="write_past_the_primitives")
def write_past_the_primitives(graph: Graph, ctx: PassContext) -> None:
    """Break an invariant, which no pass may do."""
    graph.nodes[0].proto.input[0] = "somewhere else"


def test_a_proto_that_was_written_to_breaks_the_view() -> None:
    broken = model(RELUS)
    broken.main.nodes[0].proto.input[0] = "somewhere else"
    with pytest.raises(AssertionError, match="'node_a' differs from its NodeProto"):
        broken.check_view()


def test_an_order_that_is_out_of_date_breaks_the_view() -> None:
    broken = model(RELUS)
    broken.main._order = broken.main.nodes[::-1]
    with pytest.raises(AssertionError, match="topological order"):
        broken.check_view()


def test_the_debug_switch_names_the_pass_that_broke_the_view() -> None:
    with (
        PassContext(config={"debug.check_view": True}),
        pytest.raises(PassError, match=r"write_past_the_primitives failed .* differs from its"),
    ):
        write_past_the_primitives(model(RELUS))


def test_without_the_option_nothing_is_checked() -> None:
    with PassContext():
        write_past_the_primitives(model(RELUS))


def test_a_type_that_contradicts_the_operands_is_found() -> None:
    broken = model("g (float[2,3] x) => (float[2,3] y) { a = Relu(x)  b = Neg(a)  y = Abs(b) }")
    broken.check_view(types=True)
    broken.main.set_type(broken.main.values["b"], TensorType(1, (3, 2)))
    broken.check_view()
    with pytest.raises(AssertionError, match=r"output 'b' .* is float\[2,3\], not float\[3,2\]"):
        broken.check_view(types=True)
