import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.small import registered
from tiered import Graph, Value, op, pass_names, rewrite, var


def test_all_that_is_printed(transcript: Callable[[str], None]) -> None:
    transcript("passes")


def test_the_table_has_every_pass_on_one_line(cli: Cli) -> None:
    ended = cli("passes")
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    for name in pass_names():
        assert sum(line.split()[:1] == [name] for line in lines) == 1
    assert f"{len(pass_names())} passes" in lines


def test_a_pass_is_described_with_law_options_and_aliases(cli: Cli) -> None:
    shown = cli("passes", "fold_constant").out
    for text in ("=>", "max_growth", "1%", "a size such as", "exact", "constant_folding"):
        assert text in shown
    assert "fold_constant.py" in shown
    assert "Args:" not in shown


def test_a_file_is_named_from_the_working_directory_if_it_lies_there(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = Path(json.loads(cli("passes", "fold_constant", "--json").out)["source"])
    monkeypatch.chdir(file.parent)
    assert "file:        fold_constant.py\n" in cli("passes", "fold_constant").out
    monkeypatch.chdir(tmp_path)
    assert f"file:        {file}\n" in cli("passes", "fold_constant").out


def test_an_opt_in_pass_says_that_it_runs_only_when_required(cli: Cli) -> None:
    shown = cli("passes", "remove_initializer_from_input").out
    assert "opt-in (runs only when required)" in shown
    assert "interface" in shown


@pytest.mark.parametrize("name", ["FoldConstant", "fold-constant", "constant_folding"])
def test_other_names_find_the_pass(cli: Cli, name: str) -> None:
    assert json.loads(cli("passes", name, "--json").out)["name"] == "fold_constant"


def test_operators_beyond_onnx_are_named(cli: Cli) -> None:
    made = cli("passes", "fuse_quick_gelu").out
    assert "makes:       com.microsoft::QuickGelu" in made
    perhaps = cli("passes", "fuse_gelu").out
    assert "may make:    com.microsoft::Gelu" in perhaps
    assert "makes:" not in perhaps


def test_an_unknown_pass_is_a_usage_error_with_a_suggestion(cli: Cli) -> None:
    ended = cli("passes", "fold_constnat")
    assert (ended.code, ended.out) == (2, "")
    assert "did you mean 'fold_constant'?" in ended.err


def test_json_describes_all_passes_alike(cli: Cli) -> None:
    described = json.loads(cli("passes", "--json").out)
    assert [entry["name"] for entry in described] == list(pass_names())
    fields = "name kind opt_level numerics changes_interface analysis law doc options required"
    fields += " followed_by conflicts makes may_make touches quantization aliases life replacement"
    fields += " source"
    expected = {*fields.split()}
    assert all(entry.keys() == expected for entry in described)
    one = next(entry for entry in described if entry["name"] == "fold_constant")
    assert one == json.loads(cli("passes", "fold_constant", "--json").out)
    option = one["options"][0]
    assert option.keys() == {"name", "takes", "default", "doc"}
    opt_in = next(e for e in described if e["name"] == "remove_initializer_from_input")
    assert opt_in["opt_level"] is None


def names(cli: Cli, *options: str) -> set[str]:
    ended = cli("passes", "--json", *options)
    assert ended.code == 0, ended.err
    return {entry["name"] for entry in json.loads(ended.out)}


def test_a_glob_lists_the_passes_that_fit(cli: Cli) -> None:
    found = names(cli, "fuse_*")
    assert found == {name for name in pass_names() if name.startswith("fuse_")}
    shown = cli("passes", "fuse_*").out
    assert f"{len(found)} passes\n" in shown
    ended = cli("passes", "wurst_*")
    assert (ended.code, "no pass fits 'wurst_*'" in ended.err) == (2, True)


def test_the_passes_of_an_operator_are_found_wherever_they_are(cli: Cli) -> None:
    found = names(cli, "--op", "Conv")
    assert found >= {
        *("backward_fold_scale_axis", "forward_fold_scale_axis", "convert_layout"),
        *("alter_op_layout", "fuse_qdq_into_conv", "fuse_bn_into_conv", "fuse_pad_into_conv"),
        *("fuse_bias_add", "combine_parallel_conv2d", "conv_to_matmul", "fuse_conv_activation"),
        *("eliminate_common_subexpr", "fold_constant", "inline", "eliminate_deadend"),
    }
    assert found.isdisjoint({"fuse_gelu", "fuse_layernorm", "replace_bn_with_conv", "infer_shapes"})
    assert found == names(cli, "--op", "ai.onnx::Conv")
    shown = cli("passes", "--op", "Conv").out
    assert "passes that act on Conv" in shown
    assert "passes that act on any operator" in shown


def test_a_choice_of_a_pattern_and_an_elementwise_operator_are_found(cli: Cli) -> None:
    assert "fuse_qdq_into_move" in names(cli, "--op", "Transpose")
    assert "eliminate_transpose_around_elementwise" in names(cli, "--op", "Relu")
    assert "eliminate_transpose_around_elementwise" not in names(cli, "--op", "Conv")
    assert "fuse_matmul_scale" in names(cli, "--op", "com.microsoft::FusedMatMul")


def test_an_operator_that_does_not_exist_is_a_usage_error(cli: Cli) -> None:
    ended = cli("passes", "--op", "Convv")
    assert (ended.code, "did you mean 'Conv'?" in ended.err) == (2, True)


def test_text_is_searched_in_all_that_is_said_of_passes(cli: Cli) -> None:
    assert "fuse_gelu" in names(cli, "--search", "gaussian ERROR")
    assert "fold_constant" in names(cli, "--search", "max_growth")
    assert "fold_constant" in names(cli, "--search", "constant_folding")
    assert names(cli, "fuse_*", "--op", "Conv", "--search", "pad") == {"fuse_pad_into_conv"}
    ended = cli("passes", "--search", "wurst")
    assert (ended.code, "no pass fits --search 'wurst'" in ended.err) == (2, True)


INITIALIZERS_AND_INTERFACE = {
    *("const_batch_size", "const_input_shape", "const_output_shape", "final_check"),
    *("eliminate_duplicate_initializer", "eliminate_unused_initializer", "format_parameter"),
    *("infer_shapes", "move_subgraph_initializer", "remove_initializer_from_input"),
    *("remove_unused_opsets", "topological_sort", "unique_name_for_nodes"),
    *("check_with_fake_data", "layer_precision_compare", "model_overview"),
    *("verify_equality", "verify_metric", "add_checkpoints", "drop_unused_inputs"),
    "drop_false_declarations",
    "strip",
    *("rename", "reorder", "bake_parameters", "unbake", "dense_to_sparse", "measure_error"),
    *("overlap_io", "recompute", "schedule", "split_by_budget"),
}
"""Passes that look at any model, and rewrite no node of an operator that a user may ask for."""


def test_each_pass_says_what_it_acts_on(cli: Cli) -> None:
    silent = {
        entry["name"] for entry in json.loads(cli("passes", "--json").out) if not entry["touches"]
    }
    assert silent == INITIALIZERS_AND_INTERFACE


def test_a_stage_of_life_is_listed_and_shown(cli: Cli) -> None:
    @rewrite(op.Neg(var.x), opt_level=1, life="preview")
    def early_neg(graph: Graph, x: Value) -> Value:
        return x

    @rewrite(op.Abs(var.x), opt_level=1, life="deprecated", replacement="drop_abs")
    def late_abs(graph: Graph, x: Value) -> Value:
        return x

    with registered(early_neg, late_abs):
        shown = cli("passes", "--life", "preview").out
        assert "early_neg" in shown
        assert "1, preview" in shown
        assert "late_abs" not in shown
        assert "level:       1, preview (runs only when required)" in cli("passes", "early_neg").out
        shown = cli("passes", "late_abs").out
        assert "level:       1, deprecated\n" in shown
        assert "use:         drop_abs" in shown
        described = json.loads(cli("passes", "late_abs", "--json").out)
        assert (described["life"], described["replacement"]) == ("deprecated", "drop_abs")
