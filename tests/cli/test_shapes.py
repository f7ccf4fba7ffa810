"""Shapes given to inputs, by all the spellings that people know, and why shape operators stay."""

import json
from pathlib import Path
from shlex import quote, split

import onnx
import pytest

from tests.cli.conftest import Cli
from tiered import optimize
from tiered.testing import parse

DYNAMIC = """(float[batch,3,w] x) => (float[batch,K] y) <int64[1] zero = {0}, int64[1] rest = {-1}>
    { s = Shape(x)  n = Gather(s, zero)  t = Concat<axis=0>(n, rest)  y = Reshape(x, t) }"""
BAKED = """(float[batch,4] x) => (float[2,8] y) <int64[2] t = {2,8}>
    { a = Relu(x)  y = Reshape(a, t) }"""


def saved(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "m.onnx"
    onnx.save(parse(text), path)
    return path


def dims(path: Path) -> list[int | str]:
    shape = onnx.load(path).graph.input[0].type.tensor_type.shape
    return [dim.dim_value or dim.dim_param for dim in shape.dim]


@pytest.mark.parametrize(
    "option",
    ["--input-shape", "--overwrite-input-shape", "--input-shapes", "--override-input-shapes"],
)
@pytest.mark.parametrize("passes", [[], ["--passes", "fold_constant,trace_folding"]])
def test_an_input_gets_its_shape_and_the_shape_operators_go(
    cli: Cli, tmp_path: Path, option: str, passes: list[str]
) -> None:
    source, out = saved(tmp_path, DYNAMIC), tmp_path / "o.onnx"
    ended = cli("optimize", source, out, option, "x:2,3,w", "--verify", *passes)
    assert ended.code == 0, ended.err
    assert dims(out) == [2, 3, "w"]
    assert "Shape" not in [node.op_type for node in onnx.load(out).graph.node]


def test_a_name_may_be_given_and_python_takes_shapes_too(cli: Cli, tmp_path: Path) -> None:
    source, out = saved(tmp_path, DYNAMIC), tmp_path / "o.onnx"
    assert cli("optimize", source, out, "--input-shape", "x=rows,-1,8").code == 0
    assert dims(out) == ["rows", 3, 8]
    optimize(source, out, input_shapes={"x": [4, -1, -1]}, required=["final_check"])
    assert dims(out) == [4, 3, "w"]


def test_wrong_shapes_are_errors_that_say_what_is_there(cli: Cli, tmp_path: Path) -> None:
    source = saved(tmp_path, DYNAMIC)
    for shape, code, words in (
        ("z:1", 2, "no input 'z'; it has x"),
        ("x:1,3", 1, "has 3 dims"),
        ("x:1,4,8", 1, "dim 1 of input 'x' is 3"),
    ):
        ended = cli("optimize", source, "--dry-run", "--input-shape", shape)
        assert (ended.code, words in ended.err) == (code, True), ended.err


def test_a_batch_that_is_baked_into_a_reshape_is_named(cli: Cli, tmp_path: Path) -> None:
    ended = cli("optimize", saved(tmp_path, BAKED), "--dry-run", "--input-shape", "x:1,4")
    assert ended.code == 1
    assert "Reshape 'y' makes [2, 8] of [1, 4], which is baked into its constant 't'" in ended.err


COMPUTED = """(float[batch,4] x) => (float[P,4] y) <int64[2] t = {3,4}, int64[2] zeros = {0,0}>
    { target = Add(t, zeros)  a = Reshape(x, target)  y = Relu(a) }"""


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_a_batch_that_a_computed_target_has_not_is_an_error(
    cli: Cli, tmp_path: Path, level: str
) -> None:
    source, out = saved(tmp_path, COMPUTED), tmp_path / "out.onnx"
    ended = cli("optimize", source, out, level, "--dim", "batch=2")
    assert ended.code == 1
    assert "Reshape 'a' makes [3, 4] of [2, 4], which is computed as its target" in ended.err
    assert not out.exists()
    assert cli("optimize", source, out, level, "--dim", "batch=3").code == 0


def test_sizes_that_contradict_each_other_are_an_error(cli: Cli, tmp_path: Path) -> None:
    source = saved(tmp_path, "(float[n,4] x) => (float[n,4] y) { y = Relu(x) }")
    out = tmp_path / "out.onnx"
    ended = cli("optimize", source, out, "--dim", "n=2", "--input-shape", "x:3,4")
    assert ended.code == 2
    assert "'x' says 3 where the dim 'n' is 2" in ended.err
    assert "--input-shape" in ended.err
    assert "--dim" in ended.err
    assert not out.exists()
    for shape in ("x:2,4", "x:?,4", "x:n,4"):
        assert cli("optimize", source, out, "--dim", "n=2", "--input-shape", shape).code == 0
        assert dims(out) == [2, 4]


def test_lines_about_dims_are_short(cli: Cli, tmp_path: Path) -> None:
    inputs = ", ".join(f"float[batch,dim_{at},1] past_key_values_{at}" for at in range(20))
    text = f"""(float[batch,w] x, {inputs}) => (int64[2] y) {{ y = Shape(x) }}"""
    ended = cli("optimize", saved(tmp_path, text), "--dry-run")
    lines = [line for line in ended.out.splitlines() if "dynamic" in line]
    assert max(map(len, lines)) <= 120
    assert "(x[0] and 20 more) is dynamic; `--dim batch=1` (any size) fixes it" in lines[0]
    assert lines[-1].startswith("22 options fix all dynamic dims at once; `tiered inspect -v`")
    assert lines[-1] in cli("inspect", tmp_path / "m.onnx").out
    whole = "all dynamic dims at once: `--dim batch=1 --dim w=1 --dim dim_0=1 "
    assert whole in cli("inspect", tmp_path / "m.onnx", "-v").out
    assert whole in cli("optimize", tmp_path / "m.onnx", "--dry-run", "-v").out


def test_the_summary_says_which_dim_keeps_shape_operators(cli: Cli, tmp_path: Path) -> None:
    text = """(float[batch,w] x, float[batch,w] z) => (int64[2] y, float[batch,w] s)
        { y = Shape(x)  s = Add(x, z) }"""
    ended = cli("optimize", saved(tmp_path, text), "--dry-run")
    assert "1 shape operator is left because 'batch' (x[0], z[0]) is dynamic" in ended.out
    assert "`--dim batch=1`" in ended.out
    assert "all dynamic dims at once: `--dim batch=1 --dim w=1`\n" in ended.out
    fixed = cli("optimize", tmp_path / "m.onnx", "--dry-run", "--input-shape", "x:1,8")
    assert fixed.code == 0, fixed.err
    assert "shape operator" not in fixed.out


def test_the_plan_shows_the_shapes(cli: Cli, tmp_path: Path) -> None:
    source = saved(tmp_path, DYNAMIC)
    shown = cli("optimize", source, "--print-pipeline", "--json", "--input-shape", "x:1,3,8").out
    (step,) = [s for s in json.loads(shown)["passes"] if "const_input_shape" in s["pass"]]
    assert step["runs"] is True
    assert "x: [1,3,8]" in json.dumps(step)


TORCHSCRIPT = """(float[batch,seq] ids, float[batch,seq] mask)
    => (float[batch,MatMullogits_dim_1] logits)
    { a = Add(ids, mask)  s = Shape(a)  b = Reshape(a, s)  logits = Concat<axis=1>(b, a) }"""


def output_dims(path: Path) -> list[int | str]:
    shape = onnx.load(path).graph.output[0].type.tensor_type.shape
    return [dim.dim_value or dim.dim_param for dim in shape.dim]


@pytest.mark.parametrize("extra", [[], ["--annotate"], ["--passes", "infer_shapes"], ["-O0"]])
@pytest.mark.parametrize(
    "shapes",
    [
        ["--input-shape", "ids:3,4"],
        ["--dim", "batch=3", "--dim", "seq=4"],
        ["--dim", "batch=3,seq=4"],
        ["--dim", "batch=3", "--input-shape", "mask:?,4"],
    ],
)
def test_what_is_fixed_reaches_outputs_with_names_of_their_own(
    cli: Cli, tmp_path: Path, shapes: list[str], extra: list[str]
) -> None:
    source, out = saved(tmp_path, TORCHSCRIPT), tmp_path / "o.onnx"
    ended = cli("optimize", source, out, "--verify", *shapes, *extra)
    assert ended.code == 0, ended.err
    assert dims(out) == [3, 4]
    assert output_dims(out) == [3, 8]
    infos = onnx.load(out).graph.value_info
    assert all(dim.HasField("dim_value") for i in infos for dim in i.type.tensor_type.shape.dim)


def test_without_shapes_outputs_keep_their_names(cli: Cli, tmp_path: Path) -> None:
    source, out = saved(tmp_path, TORCHSCRIPT), tmp_path / "o.onnx"
    assert cli("optimize", source, out, "-O3").code == 0
    assert output_dims(out) == ["batch", "MatMullogits_dim_1"]


@pytest.mark.parametrize("entry", ["batch", "=1", "batch=0", "batch=2.5", "batch=1,batch=2", "b=?"])
def test_what_fixes_no_dim_is_a_usage_error(cli: Cli, tmp_path: Path, entry: str) -> None:
    ended = cli("optimize", saved(tmp_path, DYNAMIC), "--dry-run", "--dim", entry)
    assert (ended.code, "--dim" in ended.err) == (2, True), ended.err


def test_a_dim_that_is_not_there_is_named(cli: Cli, tmp_path: Path) -> None:
    ended = cli("optimize", saved(tmp_path, DYNAMIC), "--dry-run", "--dim", "bach=1")
    assert ended.code == 2
    assert "no input of the model has a dim 'bach'; did you mean 'batch'?; it has" in ended.err


def test_python_fixes_dims_too(tmp_path: Path) -> None:
    source, out = saved(tmp_path, TORCHSCRIPT), tmp_path / "o.onnx"
    optimize(source, out, dims={"batch": 3, "seq": 4})
    assert (dims(out), output_dims(out)) == ([3, 4], [3, 8])


def test_the_hint_fixes_dims_without_names_too(cli: Cli, tmp_path: Path) -> None:
    source = saved(tmp_path, "(float[batch,?,3] x, float[2] z) => (float[?,?,?] y) { y = Relu(x) }")
    shown = cli("inspect", source).out
    hint = "--dim batch=1 --input-shape x:-1,1,3"
    assert f"all dynamic dims at once: `{hint}`" in shown
    out = tmp_path / "o.onnx"
    assert cli("optimize", source, out, *hint.split()).code == 0
    assert (dims(out), output_dims(out)) == ([1, 1, 3], [1, 1, 3])
    assert "dynamic dim" not in cli("inspect", out).out


@pytest.mark.parametrize("option", [["--dim", "batch=2"], ["--input-shape", "x:2,?,?"]])
def test_other_commands_take_shapes_and_a_backend(
    cli: Cli, tmp_path: Path, option: list[str]
) -> None:
    source = saved(tmp_path, DYNAMIC)
    option = [*option, "--backend", "onnxruntime_cpu"]
    facts = json.loads(cli("inspect", source, "--json", *option).out)
    assert facts["dynamic_dims"] == {"w": ["x[2]"]}
    assert facts["backend"]["taken"] == 4
    assert cli("check", source, *option).code == 0
    assert cli("layout", source, "--json", "--after", "default", *option).code == 0
    explained = cli("explain", source, "trace_folding", *option)
    assert "fires" in explained.out, explained.err
    for command in (["inspect"], ["check"], ["layout"], ["explain"]):
        rest = ["trace_folding"] if command == ["explain"] else []
        wrong = cli(*command, source, *rest, "--dim", "bach=1", "--backend", "onnxruntime_cpu")
        assert (wrong.code, "did you mean 'batch'" in wrong.err) == (2, True), wrong.err
        wrong = cli(*command, "nowhere.onnx", *rest, "--backend", "portabel")
        assert (wrong.code, "did you mean 'portable'" in wrong.err) == (2, True), wrong.err


def test_explain_asks_the_backend(cli: Cli, tmp_path: Path) -> None:
    source = saved(tmp_path, "(float[2] x) => (float[2] y) { s = Sigmoid(x)  y = Mul(x, s) }")
    for backend, said in (
        ("portable", "'y' declined: portable does not take QuickGelu"),
        ("onnxruntime_cpu", "'y' fires"),
    ):
        assert said in cli("explain", source, "fuse_quick_gelu", "--backend", backend).out


def test_a_dim_without_a_name_keeps_shape_operators_too(cli: Cli, tmp_path: Path) -> None:
    text = "(float[?,3] x) => (int64[2] y, float[?,3] z) { y = Shape(x)  z = Relu(x) }"
    ended = cli("optimize", saved(tmp_path, text), "--dry-run")
    assert "a dim without a name (x[0]) is dynamic; `--input-shape x:1,-1`" in ended.out


def test_bisect_takes_dims(cli: Cli, tmp_path: Path) -> None:
    ended = cli("bisect", saved(tmp_path, DYNAMIC), "--dim", "batch=2")
    assert (ended.code, ended.out) == (0, "no wrong rewrite found\n")


MASKED = """(int64[batch,{seq}] ids, float[batch,{total}] mask, float[batch,{past},2] past)
    => (float[?,?] y)
    <int64[1] axis = {{2}}, float one = {{1}}> {{ f = Cast<to=1>(ids)  u = Unsqueeze(f, axis)
    v = Concat<axis=2>(u, u)  k = Concat<axis=1>(past, v)  r = ReduceSum<keepdims=0>(k, axis)
    s = Shape(r)  e = Expand(one, s)  t = Mul(r, e)
    m = Concat<axis=0>(mask, t)  y = Identity(m) }}"""


@pytest.mark.parametrize(
    "names",
    [
        {"seq": "seq", "total": "total", "past": "past"},
        {"seq": "seq", "total": "past + seq", "past": "past"},
        {"seq": "s70", "total": "s53", "past": "s69"},  # as torch.export names them
    ],
)
def test_the_hint_fixes_dims_that_fit_together(
    cli: Cli, tmp_path: Path, names: dict[str, str]
) -> None:
    text = MASKED.format(**dict.fromkeys(names, "?"))
    model = parse(text.replace("batch", "b"))
    for value, role in zip(model.graph.input, ("seq", "total", "past"), strict=True):
        value.type.tensor_type.shape.dim[1].dim_param = names[role]
    source = tmp_path / "m.onnx"
    onnx.save(model, source)
    shown = cli("inspect", source).out
    hint = f"--dim b=1 --dim {names['seq']}=1 --dim {quote(names['total'] + '=2')}"
    hint += f" --dim {names['past']}=1"
    assert f"all dynamic dims at once: `{hint}`" in shown
    out = tmp_path / "o.onnx"
    assert cli("optimize", source, out, *split(hint), "--verify").code == 0
    assert dims(out) == [1, 1]


def test_the_hint_takes_sizes_from_weights(cli: Cli, tmp_path: Path) -> None:
    text = """(float[batch,c,h,w] x) => (float[?,?,?,?] y)
        <float[1,3,1,1] k = {1,2,3}> { y = Conv(x, k) }"""
    shown = cli("inspect", saved(tmp_path, text)).out
    assert "all dynamic dims at once: `--dim batch=1 --dim c=3 --dim h=1 --dim w=1`" in shown
