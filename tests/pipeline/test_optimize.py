"""optimize: from a file or a ModelProto to an optimised one."""

import gc
import hashlib
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import tiered
from tests.small import drop_neg, failing, fuse_relu, look, model, ops, proto, registered
from tiered import (
    Graph,
    PassContext,
    Sequential,
    ShapeError,
    Skip,
    Value,
    op,
    optimize_model,
    rewrite,
    var,
)
from tiered.graph.io.protobuf_scan import SCANNED
from tiered.pipeline.optimize import Settings, settings_with_shapes, shaped
from tiered.support.errors import ModelError, PassError, TargetError, UsageError, VerificationError

IDENTITIES = "g (float[N,3] x) => (float[N,3] y) { a = Identity(x)  b = Relu(a)  y = Identity(b) }"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "in.onnx"
    onnx.save(proto(IDENTITIES), path)
    return path


@pytest.fixture(autouse=True)
def _named() -> Iterator[None]:
    with registered(fuse_relu, drop_neg, look):
        yield


def test_a_proto_gives_a_new_proto_and_stays_as_it_was() -> None:
    given = proto(IDENTITIES)
    before = given.SerializeToString(deterministic=True)
    result = tiered.optimize(given)
    assert ops(result) == ["Relu"]
    assert given.SerializeToString(deterministic=True) == before


def test_a_file_gives_a_proto_or_is_written(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.onnx"
    assert ops(tiered.optimize(file)) == ["Relu"]
    assert ops(tiered.optimize(str(file))) == ["Relu"]
    summary = tiered.optimize(file, out)
    assert ops(onnx.load(out)) == ["Relu"]
    assert summary.after.nodes == 1
    assert sorted(os.listdir(tmp_path)) == ["in.onnx", "out.onnx"]


@pytest.mark.parametrize("name", ["in.onnx", "link.onnx", "folder/../in.onnx"])
def test_the_file_that_is_read_is_never_written(file: Path, name: str) -> None:
    (file.parent / "folder").mkdir()
    (file.parent / "link.onnx").symlink_to(file)
    before = file.read_bytes()
    with pytest.raises(UsageError, match="is the model that is read"):
        tiered.optimize(file, file.parent / name)
    assert file.read_bytes() == before


@pytest.mark.parametrize("thing", [None, 3, [], model()])
def test_anything_else_is_refused(thing: Any) -> None:
    with pytest.raises(UsageError, match=r"optimize takes a path, an onnx\.ModelProto, bytes"):
        tiered.optimize(thing)


def test_a_file_that_is_not_there_is_a_model_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"nowhere\.onnx"):
        tiered.optimize(tmp_path / "nowhere.onnx")


def test_the_settings_are_those_of_the_context() -> None:
    assert ops(tiered.optimize(proto(IDENTITIES), disabled=["eliminate_identity"])) == [
        "Identity",
        "Relu",
        "Identity",
    ]
    seen: list[str] = []
    tiered.optimize(proto(), trace=lambda model, info, before: seen.append(info.name))
    assert "eliminate_identity" in seen
    with pytest.raises(UsageError, match="'optlevel'; did you mean 'opt_level'"):
        tiered.optimize(proto(), optlevel=3)  # type: ignore[call-overload]  # the point


@pytest.mark.parametrize(
    "passes", ["fuse_relu,drop_neg", ["fuse_relu", drop_neg], Sequential([fuse_relu, drop_neg])]
)
def test_all_that_is_listed_runs_whatever_its_level(passes: Any) -> None:
    assert ops(tiered.optimize(proto(), opt_level=0, passes=passes)) == ["Relu", "Abs"]


def test_what_is_listed_can_still_be_disabled() -> None:
    result = optimize_model(proto(), passes="fuse_relu,drop_neg", disabled=["drop_neg"])
    assert ops(result.model) == ["Relu", "Neg", "Abs"]
    assert all(remark.kind != "unmet" for remark in result.remarks)


def test_the_opt_ins_of_the_default_pipeline_stay_parked_in_a_longer_one() -> None:
    result = optimize_model(proto(), passes="default,drop_neg")
    assert "Neg" not in ops(result.model)
    (parked,) = result.report.of("remove_initializer_from_input")
    assert parked.reason == "opt-in: runs only when required"


def test_decisions_name_the_line_that_called_optimize() -> None:
    frame = inspect.currentframe()
    assert frame is not None
    line = frame.f_lineno + 1
    result = optimize_model(proto(), disabled=["eliminate_identity"])
    (skipped, *_) = result.report.of("eliminate_identity")
    expected = f"disabled by 'eliminate_identity', set at {os.path.relpath(__file__)}:{line}"
    assert skipped.reason == expected


def test_the_result_says_what_there_was_and_what_is_left(file: Path) -> None:
    result = optimize_model(file)
    assert (result.before.nodes, result.after.nodes) == (3, 1)
    assert result.before.operators == {"Identity": 2, "Relu": 1}
    assert result.after.operators == {"Relu": 1}
    assert result.before.nbytes == file.stat().st_size
    assert result.after.nbytes < result.before.nbytes
    assert result.seconds >= sum(entry.seconds for entry in result.report.ran())
    assert result.pipeline == tiered.default_pipeline()
    assert result.verified is None


def test_a_model_is_optimised_in_place_where_that_is_asked_for() -> None:
    given = model(IDENTITIES)
    assert optimize_model(given).model is given
    assert ops(given) == ["Relu"]


def test_the_context_around_holds_too() -> None:
    with PassContext(disabled=["eliminate_identity"]) as ctx:
        assert len(ops(tiered.optimize(proto(IDENTITIES)))) == 3
    assert ctx.report.of("eliminate_identity")


@pytest.mark.parametrize("enabled", [True, False])
def test_the_garbage_collector_is_paused_and_left_as_it_was(enabled: bool) -> None:
    during: list[bool] = []
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        tiered.optimize(proto(), trace=lambda *_: during.append(gc.isenabled()))
        assert gc.isenabled() is enabled
        with pytest.raises(PassError):
            tiered.optimize(proto(), passes=[failing(ValueError())])
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if before else gc.disable)()
    assert not any(during)


# --- verification ---------------------------------------------------------------------------------


@rewrite(op.Relu(var.x), opt_level=0)
def relu_to_abs(graph: Graph, x: Value) -> Value:
    """Wrong for what is negative."""
    result: Value = graph.op.Abs(x)
    return result


def test_verification_compares_both_bindings(file: Path) -> None:
    for given in (file, proto(IDENTITIES), model(IDENTITIES)):
        verified = optimize_model(given, verify=True).verified
        assert verified is not None
        assert [comparison.ok for comparison in verified] == [True, True]
        assert {comparison.numerics.value for comparison in verified} == {"exact"}


def test_nothing_is_written_when_verification_fails(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.onnx"
    with pytest.raises(VerificationError) as caught:
        tiered.optimize(file, out, passes=[relu_to_abs], verify=True)
    assert not out.exists()
    message = str(caught.value)
    assert message.startswith(f"relu_to_abs changed output 'y' of {file} (max abs ")
    assert ", promised: exact)\n  outputs     y: " in message
    assert "\n  sizes       N=" in message
    assert message.endswith("\n  rewrites    #1 of the run, at 'node_b'")


def test_verified_at_the_end_all_passes_are_named(file: Path) -> None:
    with pytest.raises(VerificationError) as caught:
        tiered.optimize(file, passes=["eliminate_identity", relu_to_abs], verify="final")
    message = str(caught.value)
    assert message.startswith(f"the passes changed what {file} computes (promised: exact)\n")
    assert message.endswith("\n  changed by  eliminate_identity, relu_to_abs")


def nearly_abs(graph: Graph, x: Value) -> Value:
    factor = graph.constant(np.array(1 + 1e-6, np.float32))
    result: Value = graph.op.Mul(graph.op.Abs(x), factor)
    return result


def test_the_loosest_promise_of_what_changed_something_holds() -> None:
    close = rewrite(op.Relu(var.x), opt_level=0, numerics="reassociating", name="close")
    exact = rewrite(op.Relu(var.x), opt_level=0, name="exact")
    of_positive = "g (float[N,3] x) => (float[N,3] y) { a = Abs(x)  y = Relu(a) }"
    tiered.optimize(proto(of_positive), passes=[close(nearly_abs)], verify=True)
    for passes in ([exact(nearly_abs)], [close(lambda graph, x: Skip("no")), exact(nearly_abs)]):
        with pytest.raises(VerificationError, match="promised: exact"):
            tiered.optimize(proto(of_positive), passes=passes, verify="final")


def test_an_interface_that_changed_is_compared_where_both_have_it() -> None:
    with_default = """g (float[2] x, float[2] w) => (float[2] y) <float[2] w = {1, 2}> {
        y = Mul(x, w)
    }"""
    result = optimize_model(
        proto(with_default), required=["remove_initializer_from_input"], verify=True
    )
    assert [value.name for value in result.model.main.inputs] == ["x"]
    assert result.verified is not None


def test_weights_in_other_files_are_found(tmp_path: Path) -> None:
    path, out = tmp_path / "in.onnx", tmp_path / "sub" / "out.onnx"
    out.parent.mkdir()
    text = "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { a = Identity(x)  y = Mul(a, w) }"
    onnx.save(proto(text), path, save_as_external_data=True, size_threshold=0, location="w.bin")
    tiered.optimize(path, out, verify=True)
    assert ops(onnx.load(out)) == ["Mul"]
    onnx.checker.check_model(str(out))


@pytest.mark.parametrize("seed", ["0", "1", "77"])
def test_the_same_input_gives_the_same_bytes_in_every_process(seed: str) -> None:
    script = (
        "import hashlib, tiered; from tests.small import proto;"
        f"result = tiered.optimize(proto({IDENTITIES!r}));"
        "print(hashlib.sha256(result.SerializeToString(deterministic=True)).hexdigest())"
    )
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    command = [sys.executable, "-c", script]
    digest = subprocess.check_output(command, env=environment, text=True)
    here = tiered.optimize(proto(IDENTITIES)).SerializeToString(deterministic=True)
    assert digest.strip() == hashlib.sha256(here).hexdigest()


# --- what it says of itself -----------------------------------------------------------------------


def test_weights_that_stay_in_a_large_file_count_once(tmp_path: Path) -> None:
    source, out = tmp_path / "large.onnx", tmp_path / "out.onnx"
    made = proto("g (float[N,1100] x) => (float[N,1000] y) <float[1] w = {0}> { y = MatMul(x, w) }")
    weight = onnx.numpy_helper.from_array(np.zeros((1100, 1000), np.float32), "w")
    made.graph.initializer[0].CopyFrom(weight)
    onnx.save(made, source)
    assert source.stat().st_size > SCANNED
    summary = tiered.optimize(source, out)
    assert summary.before.nbytes == source.stat().st_size
    assert summary.after.nbytes == out.stat().st_size


def test_a_written_file_gives_the_summary(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.onnx"
    summary = tiered.optimize(file, out, opt_level=1)
    assert (summary.before.operators, summary.after.operators) == (
        {"Identity": 2, "Relu": 1},
        {"Relu": 1},
    )
    assert (summary.before.nbytes, summary.after.nbytes) == (
        file.stat().st_size,
        out.stat().st_size,
    )
    lines = str(summary).splitlines()
    assert lines[0].startswith(f"-O1 for portable: {summary.rewrites} rewrites in ")
    assert lines[0].endswith(" s, not verified")
    assert [line.split() for line in lines[1:4]] == [
        ["before", "after", "change"],
        ["Identity", "2", "0", "-2", "(-100%)"],
        ["nodes", "3", "1", "-2", "(-67%)"],
    ]
    assert "Relu" not in str(summary)  # it stays
    assert lines[-1] == f"written to {out}"


def test_a_result_as_text_is_the_table_of_its_summary() -> None:
    result = optimize_model(proto(IDENTITIES), verify="final")
    assert str(result) == str(result.summary)
    head = str(result).splitlines()[0]
    assert head.startswith("-O2 for portable: ")
    assert head.endswith(" s, verified")
    assert result.summary.after == result.after


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"disable": ["fuse_*"]}, "no setting 'disable'; here it is called 'disabled'"),
        ({"require": ["fuse_*"]}, "here it is called 'required'"),
        ({"input_shape": {}}, "here it is called 'input_shapes'"),
        ({"dim": {}}, "here it is called 'dims'"),
        ({"opt_levl": 3}, "no setting 'opt_levl'; did you mean 'opt_level'?"),
        ({"opt_level": 7}, "opt_level takes an integer from 0 to 4, not 7"),
        ({"opt_level": -1}, "opt_level takes an integer from 0 to 4, not -1"),
    ],
)
def test_a_wrong_setting_is_an_error_that_names_the_right_one(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        tiered.optimize(proto(IDENTITIES), **settings)


def test_help_names_each_setting_with_its_meaning() -> None:
    documented = inspect.getdoc(tiered.optimize) or ""
    of_context = inspect.getdoc(tiered.PassContext) or ""
    for name in Settings.__annotations__:
        texts = [text for text in (documented, of_context)
                 if re.search(rf"^    {name}: [\w\"]", text, re.MULTILINE)]  # fmt: skip
        assert len(texts) == 1, name
        assert re.search(rf"\b{name}\b", documented), name


@pytest.mark.parametrize(
    "nodes",
    [
        "(float[2,3,4] x) => (float[2,3,2] y) {w} { p = MatMul(x, w)  y = Add(p, c) }",
        "(float[n,3,4] x) => (float[n,3,2] y) {w} {"
        " r = Relu(x)  p = MatMul(r, w)  s = Add(p, c)  y = Sigmoid(s) }",
    ],
)
def test_level_3_has_no_more_nodes_than_level_2(nodes: str) -> None:
    weights = "<float[4,2] w = {1,2,3,4,5,6,7,8}, float[2] c = {1,2}>"
    given = proto(f"g {nodes.replace('{w}', weights)}")
    counts = [len(tiered.optimize(given, opt_level=level).graph.node) for level in (2, 3)]
    assert counts[1] <= counts[0]


@pytest.mark.parametrize(
    ("shapes", "error", "message"),
    [
        ({"other": [2]}, UsageError, "no input 'other'; it has x"),
        ({"x": [2, 3]}, ShapeError, "has 1 dim"),
        ({"x": [3]}, ShapeError, "it cannot be 3"),
    ],
)
def test_shapes_of_generated_inputs_are_those_of_inputs(
    shapes: dict[str, list[int | str]], error: type[Exception], message: str
) -> None:
    given = proto("g (float[2] x) => (float[2] y) { y = Neg(x) }")
    with pytest.raises(error, match=message):
        tiered.optimize(given, test_shapes=shapes, verify=True)


def test_a_list_in_the_place_of_the_file_is_named(file: Path) -> None:
    with pytest.raises(UsageError, match=r"not \['fold_constant'\]; passes are named: passes="):
        tiered.optimize(file, ["fold_constant"])  # type: ignore[call-overload]  # the mistake


def test_shapes_of_inputs_or_dims_alone_are_set_first() -> None:
    plain = Sequential(["fold_constant"])
    assert shaped(plain, None) is plain
    assert shaped(plain, {}, {}) is plain
    for given in (({"x": [2, 3]}, None), (None, {"N": 2})):
        leaves = [leaf.name for leaf in shaped(plain, *given).leaves()]
        assert leaves[0] == "const_input_shape"
        assert "fold_constant" in leaves


def test_shapes_of_inputs_take_the_place_of_passes_that_set_shapes() -> None:
    own = Sequential(["const_input_shape{shape={x: [7]}}", "fold_constant", "const_output_shape"])
    made = shaped(own, {"x": [2, 3]})
    assert [leaf.name for leaf in made.leaves()] == [
        "const_input_shape", "fold_constant", "const_output_shape"
    ]  # fmt: skip
    assert "7" not in str(made)


def test_passes_that_set_shapes_are_required_beside_others() -> None:
    for settings in ({}, {"required": None}):
        found = settings_with_shapes(dict(settings), {"x": [2]})["required"]
        assert [each.name for each in found] == ["const_input_shape", "const_output_shape"]
    found = settings_with_shapes({"required": ["fuse_gelu"]}, None, {"N": 2})["required"]
    assert found[0] == "fuse_gelu"
    assert len(found) == 3
    # A string is an error that the context names.
    assert settings_with_shapes({"required": "fuse_gelu"}, {"x": [2]}) == {"required": "fuse_gelu"}
    assert settings_with_shapes({"opt_level": 1}, {}, {}) == {"opt_level": 1}


def test_passes_may_come_from_an_iterator_or_be_one() -> None:
    given: tuple[Any, ...] = (iter(["eliminate_identity"]), tiered.get_pass("eliminate_identity"))
    for passes in given:
        made = tiered.optimize(proto(IDENTITIES), passes=passes)
        assert "Identity" not in {node.op_type for node in made.graph.node[:-1]}


NAMED_SIZE = "g (float[N,M] x) => (float[N,M] y) { a = Neg(x)  y = Abs(a) }"


def test_dims_and_shapes_are_set_together() -> None:
    made = tiered.optimize(proto(NAMED_SIZE), dims={"N": 4}, input_shapes={"x": ["N", 5]})
    sizes = [dim.dim_value for dim in made.graph.input[0].type.tensor_type.shape.dim]
    assert sizes == [4, 5]
    made = tiered.optimize(proto(NAMED_SIZE), dims={"N": 4})
    dims = made.graph.input[0].type.tensor_type.shape.dim
    assert (dims[0].dim_value, dims[1].dim_param) == (4, "M")


def test_expectations_are_checked_before_and_after_the_run() -> None:
    given = proto(NAMED_SIZE)
    assert tiered.optimize(given, expect=["nodes<=2"]).graph.node
    with pytest.raises(TargetError, match="nodes<=1"):
        tiered.optimize(given, expect=["nodes<=1"])
    with pytest.raises(UsageError, match="Absolute"):
        tiered.optimize(given, expect=["Absolute>=1"])


def test_samples_are_checked_where_nothing_is_verified() -> None:
    wrong = [{"q": np.zeros((1, 1), np.float32)}]
    for how in (False, "off"):
        with pytest.raises(UsageError, match="no input 'q'"):
            tiered.optimize(proto(NAMED_SIZE), inputs=wrong, verify=how)
