"""The conversion of whole models: what is written, and what stays as it is."""

import numpy as np
import pytest

from tests.small import content, made_by, named, ops, parsed
from tiered import Model, Node, Skip, UsageError
from tiered.analysis.layout.layout_conversion import place_transposes, reach_of
from tiered.analysis.layout.sizes import LayoutSizes
from tiered.runtime import Session

TO, BACK = "Transpose<perm=[2,0,1]>", "Transpose<perm=[1,2,0]>"
CHAIN = f"(float[2,3,4] x) => (float[2,3,4] y) {{ t = {TO}(x)  r = Relu(t)  y = {BACK}(r) }}"
IMAGES = """(float[1,2,4,4] x) => (float[1,2,4,4] y) <float[2,2,1,1] w = {1,2,3,4}> {
    r = Relu(x)  y = Conv(r, w) }"""


def converted(
    text: str | Model, desired: dict[str, str] | None = None, size: int = 16
) -> tuple[Model, list[str]]:
    """Return the model, and why nodes stay; it computes the same as before."""
    model = parsed(text) if isinstance(text, str) else text
    skipped: list[str] = []

    def on_skip(node: Node | None, skip: Skip) -> None:
        skipped.append(str(skip))

    place_transposes(model, LayoutSizes(default=size), on_skip, desired)
    model.check_view(types=True)
    return model, skipped


def assert_same(text: str, desired: dict[str, str] | None = None) -> Model:
    before = parsed(text)
    model, _ = converted(text, desired)
    draw = np.random.default_rng(0)
    feeds = {
        value.name: draw.standard_normal([int(str(dim)) for dim in value.shape or ()]).astype(
            np.float32
        )
        for value in before.main.inputs
    }
    expected, found = (Session(each.to_proto()).run(feeds) for each in (before, model))
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-6)
    return model


def test_transposes_that_cancel_are_gone() -> None:
    model = assert_same(CHAIN)
    assert ops(model) == ["Relu"]
    assert named(model, "y").is_graph_output


def test_a_model_without_transposes_stays() -> None:
    model = parsed("(float[2,3] x) => (float[2,3] y) { y = Relu(x) }")
    before = content(model)
    converted(model)
    assert content(model) == before


def test_equal_views_become_one() -> None:
    text = f"""(float[2,3,4] x) => (float y, float z) {{
        t = {TO}(x)  u = {TO}(x)  y = acme.Any(t)  z = acme.Any(u) }}"""
    model, _ = converted(text)
    assert ops(model) == ["Transpose", "Any", "Any"]


def test_a_view_in_the_order_of_the_root_is_the_root() -> None:
    text = f"""(float[2,3,4] x) => (float y) {{
        t = {TO}(x)  b = {BACK}(t)  y = acme.Any(b) }}"""
    model, _ = converted(text)
    assert ops(model) == ["Any"]
    assert made_by(model, "y").inputs[0] is named(model, "x")


def test_a_view_that_is_an_output_keeps_its_name() -> None:
    text = f"""(float[2,3,4] x) => (float[2,3,4] y, float z) {{
        t = {TO}(x)  y = {BACK}(t)  z = acme.Any(t) }}"""
    model, _ = converted(text)
    assert sorted(ops(model)) == ["Any", "Identity", "Transpose"]
    assert made_by(model, "y").op_type == "Identity"


def test_of_views_of_one_order_the_first_that_is_left_remains() -> None:
    text = f"""(float[2,3,4] x) => (float y, float z) {{
        t = {TO}(x)  b = {BACK}(t)  u = {TO}(b)  v = {TO}(b)  y = acme.Any(u)  z = acme.Any(v) }}"""
    model, _ = converted(text)
    assert ops(model) == ["Transpose", "Any", "Any"]


def test_equal_views_in_two_bodies_stay_in_both() -> None:
    text = f"""(float[2,3,4] x, bool c) => (float y) {{
        y = If(c) <then_branch = t () => (float p) {{ a = {TO}(x)  p = acme.Any(a) }},
                   else_branch = e () => (float q) {{ b = {TO}(x)  q = acme.Any(b) }}> }}"""
    model, _ = converted(text)
    found = [[node.op_type for node in graph.nodes] for graph in model.graphs()]
    assert found == [["If"], ["Transpose", "Any"], ["Transpose", "Any"]]


def test_an_inner_view_of_small_elements_is_what_is_there() -> None:
    text = f"""(int4[2,3,4] x) => (float y) {{
        t = {TO}(x)  b = {BACK}(t)  y = acme.Any(b) }}"""
    assert ops(converted(text)[0]) == ["Any"]


@pytest.mark.parametrize(("dtype", "left"), [("float8e4m3fn", 1), ("int4", 2)])
def test_an_output_that_no_identity_can_be_keeps_its_transpose(dtype: str, left: int) -> None:
    """onnxruntime has no Identity of less than 8 bits."""
    text = f"""({dtype}[2,3,4] x) => ({dtype}[2,3,4] y, float z) {{
        t = {TO}(x)  y = {BACK}(t)  z = acme.Any(t) }}"""
    model, _ = converted(text)
    assert ops(model).count("Transpose") == left


def test_the_layout_that_a_user_asks_for_is_written() -> None:
    model = assert_same(IMAGES, {"Conv": "NHWC"})
    (call,) = (node for node in model.main.nodes if node.domain)
    assert (call.domain, call.op_type) == ("tiered.nhwc", "Conv")
    assert ops(model).count("Transpose") == 2


def test_a_layout_that_is_none_is_an_error() -> None:
    with pytest.raises(UsageError, match="'NHCW' is no layout"):
        converted(IMAGES, {"Conv": "NHCW"})


def test_old_models_have_no_functions_and_say_so() -> None:
    text = f'<ir_version: 7, opset_import: ["" : 14]> g {IMAGES}'
    model, skipped = converted(text, {"Conv": "NHWC"})
    assert ops(model) == ["Relu", "Conv"]
    assert skipped == ["before IR 8 no NHWC functions: tiered convert --ir 8"]


def test_changes_of_the_interface_are_reported_if_they_are_wanted() -> None:
    changes: list[str] = []
    model = parsed(IMAGES)
    place_transposes(model, LayoutSizes(), lambda node, skip: None, {"Conv": "NHWC"},
                     on_change=changes.append)  # fmt: skip
    assert named(model, "x").shape == (1, 4, 4, 2)
    assert len(changes) == 2
    model = parsed(IMAGES)
    place_transposes(model, LayoutSizes(), lambda node, skip: None, {"Conv": "NHWC"})
    assert named(model, "x").shape == (1, 2, 4, 4)


def test_bodies_are_converted_too() -> None:
    text = f"""(float[2,3,4] x, bool c) => (float[2,3,4] y) {{
        y = If(c) <then_branch = t () => (float[2,3,4] p) {{
                       a = {TO}(x)  b = Relu(a)  p = {BACK}(b) }},
                   else_branch = e () => (float[2,3,4] q) {{ q = Neg(x) }}> }}"""
    model, _ = converted(text)
    assert sorted(node.op_type for graph in model.graphs() for node in graph.nodes) == [
        "If", "Neg", "Relu",
    ]  # fmt: skip


def test_a_second_run_changes_nothing() -> None:
    desired = {"Conv": "NHWC"}
    for text, layouts in ((IMAGES, desired), (CHAIN, None)):
        model, _ = converted(text, layouts)
        before = content(model)
        converted(model, layouts)
        assert content(model) == before


def test_the_size_of_dynamic_dims_decides() -> None:
    """A large tensor is not moved for the sake of two small ones, and the reverse."""
    text = f"""(float[N,3,4] x) => (float[N,3,4] y) {{ t = {TO}(x)  r = Relu(t)  y = {BACK}(r) }}"""
    model, _ = converted(text, size=1000)
    assert ops(model) == ["Relu"]


def test_a_rewrite_that_has_no_form_in_the_opset_is_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    from tiered.analysis.layout import apply
    from tiered.graph.opset.adapter import NoEquivalentForm

    def fail(writer: apply.Writer) -> None:
        writer.region.reach.model.main.add_node("Abs", [named(model, "x")], 1)
        raise NoEquivalentForm("no such form")

    monkeypatch.setattr(apply.Writer, "write", fail)
    model = parsed(CHAIN)
    before = content(model)
    _, skipped = converted(model)
    assert skipped == ["no such form"]
    assert content(model) == before


def test_a_search_starts_at_transposes_and_at_what_is_asked_for() -> None:
    model = parsed(IMAGES)
    assert not reach_of(model).free
    assert not reach_of(model, {"Conv": "NCHW"}).free
    names = {each.node.op_type for each in reach_of(model, {"Conv": "NHWC"}).free}
    assert names == {"Relu", "Conv"}
