"""The index of passes: it says what the files say, and what can wait is not loaded."""

import subprocess
import sys
from pathlib import Path
from types import MappingProxyType

import pytest

import tiered
from tests.small import look, model
from tiered import (
    Model,
    Pass,
    PassContext,
    PassInfo,
    Sequential,
    function_pass,
    module_pass,
    rewrite,
)
from tiered.passes import FunctionPass, ModulePass, PassResult
from tiered.passes.index.lazy import PACKAGE
from tiered.passes.index.table import INDEX
from tiered.passes.interface.pass_info import Runnable
from tiered.passes.interface.registry import Registry, registry
from tiered.passes.kinds.body import Body, BodyPass
from tiered.pipeline.default import default_pipeline
from tiered.support.errors import UsageError
from tiered.testing import parse

EXAMPLES = sorted(Path("examples/models").glob("*.onnx"))

MIXED = """(float[2,3] x, bool c) => (z) {
    y = local.act(x)
    z = If (c) <then_branch = t () => (float[2,3] a) { a = Softmax(y) },
                else_branch = e () => (float[2,3] b) { b = Relu(y) }>
  }
  <domain: "local", opset_import: ["" : 21]> act (a) => (b) { s = Sigmoid(a)  b = Mul(a, s) }"""


def test_a_pass_that_was_only_listed_is_that_of_the_file() -> None:
    for name in INDEX:
        listed, loaded = INDEX[name].made(), registry.load(name)
        assert listed == loaded
        assert type(listed) is type(loaded)
        assert listed.info == loaded.info
        assert listed.options == loaded.options
        assert set(listed.body.operators or ()) <= set(_body_of(loaded).operators or ())
        assert (listed.body.operators is None) == (_body_of(loaded).operators is None)


def test_the_law_of_a_pass_is_the_first_line_of_its_file() -> None:
    for name, listed in INDEX.items():
        loaded = registry.load(name)
        law, _, _ = (sys.modules[_module_of(loaded)].__doc__ or "").strip().partition("\n")
        assert law, name
        assert listed.made().info.law == loaded.info.law == law


def _module_of(pass_: Runnable) -> str:
    return ".".join(Path(pass_.info.source).relative_to(Path(PACKAGE).parent).with_suffix("").parts)


def test_the_prose_of_a_listed_pass_is_read_from_its_file() -> None:
    assert [name for name in INDEX if not INDEX[name].made().info.doc] == []
    said = INDEX["bake_parameters"].made().info.doc
    assert said.startswith("Let the saved model file hold weights that are in other files now;")
    assert "\nArgs:\n    tensors: names or globs" in said


def _body_of(pass_: Pass) -> Body:
    assert isinstance(pass_, BodyPass)
    return pass_.body


def _loaded_by(script: str) -> set[str]:
    """Return the passes whose files are loaded when a script is through."""
    script = f"import sys, tiered\n{script}\nprint(*sys.modules)"
    done = subprocess.check_output([sys.executable, "-c", script], text=True)
    names = (module.rpartition(".")[2] for module in done.split() if "_passes." in module)
    return set(names) & set(INDEX)


def test_to_list_passes_loads_none() -> None:
    assert _loaded_by("tiered.default_pipeline()") == set()
    assert _loaded_by("str(tiered.Sequential('fuse_gelu@a,replace_pow{cubes=false}'))") == set()
    assert _loaded_by("tiered.get_pass('fuse_gelu')") == {"fuse_gelu"}


def test_a_run_loads_what_has_operators_to_act_on() -> None:
    loaded = _loaded_by(
        "from tests.small import proto; "
        "tiered.optimize(proto('g (float[2] x) => (float[2] y) { y = Relu(x) }'), opt_level=3)"
    )
    assert {"eliminate_idempotent", "infer_shapes", "final_check"} <= loaded
    assert loaded.isdisjoint({"fuse_gelu", "fuse_consecutive_relu", "eliminate_nop_if"})
    # Parked, of a higher level, or of another target.
    assert loaded.isdisjoint({"format_parameter", "fuse_qkv", "fuse_qdq_into_unary"})


def test_a_run_looks_into_no_folder_of_passes() -> None:
    """The index says where its passes are: a walk would fail here."""
    assert _loaded_by(
        "import tiered.passes.interface.registry; "
        "sys.modules['tiered.passes.interface.registry']._pass_files = None; "
        "from tests.small import proto; "
        "tiered.optimize(proto('g (float[2] x) => (float[2] y) { a = Relu(x)  y = Relu(a) }'))"
    )


def test_bodies_and_functions_count() -> None:
    given = Model.from_proto(parse(MIXED))
    for name, acts in (
        ("fuse_silu", True),
        ("eliminate_nop_if", True),
        ("fuse_log_softmax", False),
        ("eliminate_zero_bias", False),
        ("fold_constant", True),
    ):
        assert INDEX[name].made().may_act(given) is acts, name
    (branch, _) = given.main.nodes_of("If")[0].bodies
    with given.transaction():
        branch.replace_uses(branch.outputs[0], branch.op.Log(branch.outputs[0]))
        assert INDEX["fuse_log_softmax"].made().may_act(given)


def _results(pipeline: Sequential, given: Model) -> list[PassResult]:
    with PassContext(opt_level=3) as context:
        pipeline(given)
    return [r._replace(seconds=0.0, model=0) for r in context.report.results]


@pytest.mark.parametrize("path", [*EXAMPLES, None], ids=lambda path: path.stem if path else "mixed")
def test_a_run_says_what_it_would_say_if_all_were_loaded(
    path: Path | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened() -> Model:
        return Model.load(path) if path else Model.from_proto(parse(MIXED))

    listed = _results(default_pipeline(), opened())
    with monkeypatch.context() as patch:
        patch.setattr(registry, "named", registry.load)
        patch.setattr(Body, "may_act", lambda *_: True)
        loaded = _results(default_pipeline.__wrapped__(), opened())
    assert listed == loaded


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_what_has_none_of_the_operators_that_it_looks_for_does_nothing(path: Path) -> None:
    given = Model.load(path)
    registry.load("infer_shapes").apply(given)
    for pass_ in tiered.get_registered_passes().values():
        if not isinstance(pass_, FunctionPass | ModulePass) or pass_.may_act(given):
            continue
        always = pass_._with(body=Body(pass_.function, pass_.conditions))
        with PassContext.isolated() as context:
            always.apply(given, context)
        (result,) = context.report.of(pass_.name)
        assert (result.changed, result.missed, result.found) == (False, (), ()), pass_


def test_a_pass_that_is_in_no_index_is_loaded_when_it_is_listed() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "_later", {})
        patch.setitem(vars(registry), "_expected", MappingProxyType({}))
        assert registry.named("fuse_gelu") is registry.load("fuse_gelu")
    own = Registry([], None)
    own.register(look)
    assert own.named("look") is look


def test_a_pass_of_a_script_says_what_it_looks_for() -> None:
    seen = []

    @function_pass(opt_level=0, matches=["Relu", "com.microsoft::Gelu"])
    def note(graph: tiered.Graph, ctx: PassContext) -> None:
        """Note the graphs."""
        seen.append(graph.name)

    note(model("g (float[2] x) => (float[2] y) { y = Neg(x) }"))
    assert not seen
    note(model("g (float[2] x) => (float[2] y) { y = Relu(x) }"))
    assert seen == ["g"]
    note(model("h (float[2] x) => (float[2] y) { y = com.microsoft.Gelu(x) }"))
    assert seen == ["g", "h"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("(float[2,3] x, bool c) => (float[2,3] z) { z = Relu(x) }", []),
        (MIXED, ["function", "body"]),
        (
            """(float[2] x) => (z) { z = local.act(x) }
            <domain: "local", opset_import: ["" : 21]> act (a) => (b) { b = Sigmoid(a) }""",
            ["function"],
        ),
        (
            """(float[2] x, bool c) => (z) {
              z = If (c) <then_branch = t () => (float[2] a) { a = Neg(x) },
                          else_branch = e () => (float[2] b) { b = Relu(x) }> }""",
            ["body"],
        ),
    ],
)
def test_a_pass_looks_for_functions_or_bodies(text: str, words: list[str]) -> None:
    def called(word: str) -> bool:
        seen: list[Model] = []

        @module_pass(opt_level=0, matches=[word])
        def note(model: Model, ctx: PassContext) -> None:
            """Note the model."""
            seen.append(model)

        assert note.info.touches == ()
        note(Model.from_proto(parse(text)))
        return bool(seen)

    assert [word for word in ("function", "body") if called(word)] == words


def test_what_a_rule_looks_for_its_pattern_says() -> None:
    with pytest.raises(UsageError, match="fuse: a rule takes `matches` from its pattern"):

        @rewrite(tiered.op.Relu(tiered.var.x), opt_level=0, matches=["Relu"])
        def fuse(graph: tiered.Graph, x: tiered.Value) -> tiered.Value:
            """Drop it."""
            return x


def test_what_is_listed_is_a_pass_as_any_other() -> None:
    listed = INDEX["fuse_consecutive_reshape"].made()
    assert isinstance(listed.info, PassInfo)
    assert not isinstance(listed, FunctionPass)
    assert str(listed.on("/encoder/**")) == "fuse_consecutive_reshape@'/encoder/**'"
    assert listed.info.source.endswith("fuse_consecutive_reshape.py")
