import numpy as np

from tests.analysis.legalization.compared import assert_equal
from tiered import Model, get_pass
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "replace_where_with_wherev2"
TEXT = "(bool[2] c, float[2] a, float[2] b) => (float[2] y) { y = Where(c, a, b) }"


def test_a_where_is_a_call() -> None:
    assert_rewrites(
        PASS,
        TEXT,
        '<ir_version: 10, opset_import: ["" : 21, "ai.graphcore" : 1]> g (bool[2] c, float[2] a, float[2] b) => (float[2] y)'
        " { y = ai.graphcore.WhereV2(c, a, b) }"
        ' <domain: "ai.graphcore", opset_import: ["" : 21]> WhereV2 (p, q, r) => (s) { s = Where(p, q, r) }',
    )


def test_it_is_a_call_that_every_runtime_runs() -> None:
    feeds = {
        "c": np.array([True, False]),
        "a": np.array([-0.0, np.nan], np.float32),
        "b": np.array([np.nan, -np.inf], np.float32),
    }
    assert assert_equal(PASS, TEXT, feeds) == ["WhereV2"]
    assert assert_equal(PASS, TEXT, feeds, domain="own") == ["WhereV2"]


def test_the_body_of_the_call_stays() -> None:
    model = Model.from_proto(parse(TEXT))
    for _ in range(2):
        get_pass(PASS).apply(model)
    (function,) = model.functions
    assert [node.op_type for node in function.nodes] == ["Where"]
    assert_unchanged(PASS, model.to_proto(), because="it is the body of ai.graphcore::WhereV2")


def test_an_old_file_has_no_functions() -> None:
    text = f'<ir_version: 7, opset_import: ["" : 13]> g {TEXT}'
    assert_unchanged(
        PASS, text, because="before IR 8 there are no local functions: tiered convert --ir 8"
    )
