"""Names to passes: folders, entry points, aliases, scripts."""

import copy
import importlib.metadata
import pickle
import re
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tiered
from tests.small import fuse_relu, look, registered
from tiered.passes.interface.registry import INDEX, Registry, is_glob, registry as of_package
from tiered.support.aliases import NO_EQUIVALENT, no_equivalent
from tiered.support.errors import OptionError, PassError, PassNotFoundError, UsageError

PASS = """
from tiered import Graph, PassContext, function_pass

@function_pass(opt_level=0, required={required})
def {name}(graph: Graph, ctx: PassContext) -> None:
    '''Nothing.'''
"""

Folder = tuple[str, Path]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Folder]:
    """A package of pass files that only this test has."""
    package = f"passes_of_{tmp_path.name.replace('-', '_')}"
    root = tmp_path / package
    root.mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    yield package, root
    for module in [name for name in sys.modules if name.startswith(package)]:
        del sys.modules[module]


def write(root: Path, path: str, text: str | None = None, required: str = "()") -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(PASS.format(name=file.stem, required=required) if text is None else text)


def test_the_file_name_is_the_pass_name_wherever_the_file_is(folder: Folder) -> None:
    package, root = folder
    write(root, "shape/fuse_b.py")
    write(root, "fuse_a.py")
    write(root, "shape/_helpers.py", "")
    write(root, "shape/README.md", "")
    registry = Registry([package], None)
    assert registry.names() == ("fuse_a", "fuse_b")
    assert registry.load("fuse_b").name == "fuse_b"


def test_names_are_known_and_one_is_loaded_without_importing_the_others(folder: Folder) -> None:
    package, root = folder
    write(root, "good.py")
    write(root, "bad.py", "raise RuntimeError('imported')")
    registry = Registry([package], None)
    assert registry.expand("*") == ("bad", "good")
    assert registry.load("good").name == "good"
    assert f"{package}.bad" not in sys.modules


def test_an_import_that_fails_is_an_error_with_its_cause(folder: Folder) -> None:
    package, root = folder
    write(root, "bad.py", "1 / 0")
    with pytest.raises(PassError, match=r"bad\.py: ZeroDivisionError") as caught:
        Registry([package], None).load("bad")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    with pytest.raises(PassError):
        Registry([package], None).load_all()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "mislabelled = 1",
        PASS.format(name="other", required="()"),
        PASS.format(name="other", required="()") + "\nmislabelled = other\n",
    ],
)
def test_a_file_that_does_not_define_its_pass_is_named(folder: Folder, text: str) -> None:
    package, root = folder
    write(root, "mislabelled.py", text)
    with pytest.raises(UsageError, match=r"mislabelled\.py does not define a pass 'mislabelled'"):
        Registry([package], None).load("mislabelled")


def test_two_files_of_one_name_are_both_named(folder: Folder) -> None:
    package, root = folder
    write(root, "shape/twice.py")
    write(root, "layout/twice.py")
    with pytest.raises(UsageError, match=r"'twice': .*layout.twice\.py and .*shape.twice\.py"):
        Registry([package], None).names()


def test_entry_points_add_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    point = importlib.metadata.EntryPoint("look", "tests.small:look", "tiered.passes")
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [point])
    registry = Registry([])
    assert registry.names() == ("look",)
    assert registry.load("look") is look


def test_an_entry_point_cannot_take_the_name_of_a_file(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    package, root = folder
    write(root, "look.py")
    point = importlib.metadata.EntryPoint("look", "tests.small:look", "tiered.passes")
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [point])
    with pytest.raises(UsageError, match="two passes 'look'"):
        Registry([package]).names()


def test_a_script_registers_its_own_pass() -> None:
    with registered(fuse_relu):
        assert tiered.get_pass("fuse_relu") is fuse_relu
        assert tiered.get_pass("FuseRelu") is fuse_relu
        assert "fuse_relu" in tiered.pass_names()
    with pytest.raises(PassNotFoundError):
        tiered.get_pass("fuse_relu")


def test_registering_the_same_pass_again_is_fine_and_another_of_its_name_is_not() -> None:
    registry = Registry([], None)
    other = tiered.function_pass(opt_level=0, name="look")(lambda graph, ctx: None)
    assert registry.register(look) is look
    registry.register(look)
    with pytest.raises(UsageError, match="two passes 'look'"):
        registry.register(other)
    assert registry.register(other, replace=True) is registry.load("look")


def test_a_built_in_pass_cannot_be_replaced() -> None:
    impostor = tiered.function_pass(opt_level=0, name="fold_constant")(lambda graph, ctx: None)
    with pytest.raises(UsageError, match=r"two passes 'fold_constant': .*fold_constant\.py"):
        tiered.register(impostor, replace=True)


def test_a_decorator_registers_nothing() -> None:
    before = tiered.pass_names()
    tiered.function_pass(opt_level=0, name="nowhere")(lambda graph, ctx: None)
    assert tiered.pass_names() == before


@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        ("fold_constant", "fold_constant"),
        ("FoldConstant", "fold_constant"),
        ("fold-constant", "fold_constant"),
        ("constant_folding", "fold_constant"),
        ("FoldConstants", "fold_constant"),
        ("InferType", "infer_shapes"),
        ("DeadCodeElimination", "eliminate_deadend"),
        ("EliminateDeadEnd", "eliminate_deadend"),
        ("EliminateCommonSubexpr", "eliminate_common_subexpr"),
    ],
)
def test_other_systems_names_find_our_passes(name: str, canonical: str) -> None:
    assert tiered.get_pass(name).name == canonical


def test_an_alias_may_stand_for_two_passes() -> None:
    registry = Registry([], None)
    for name in ("fuse_bn_into_conv", "fuse_bn_into_gemm"):
        registry.register(tiered.function_pass(opt_level=0, name=name)(lambda graph, ctx: None))
    assert registry.resolve("fuse_bn") == ("fuse_bn_into_conv", "fuse_bn_into_gemm")
    with pytest.raises(UsageError, match="is an alias of fuse_bn_into_conv and fuse_bn_into_gemm"):
        registry.load("fuse_bn")


def test_an_alias_of_a_pass_that_is_not_built_says_so() -> None:
    with pytest.raises(PassNotFoundError, match="it is an alias of infer_shapes"):
        Registry([], None).resolve("InferType")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("DefuseOps", "fuse_ops"),
        ("FuseTIR", ""),
        ("fuse_conv", "fuse_bn_into_conv"),
        ("layernorm", "fuse_layernorm"),
        ("EliminateCommon", "eliminate_common_subexpr"),
        ("FoldConst", "fold_constant"),
    ],
)
def test_a_suggestion_is_about_the_same_thing(name: str, meant: str) -> None:
    with pytest.raises(PassNotFoundError) as caught:
        tiered.get_pass(name)
    said = str(caught.value)
    assert f"did you mean '{meant}'" in said if meant else "did you mean" not in said


def test_an_option_may_be_called_name() -> None:
    with pytest.raises(OptionError, match="truncate_on_var has no option 'name'"):
        tiered.get_pass("truncate_on_var", name="x")


def test_what_is_known_of_a_pass_takes_all_but_the_name_by_keyword() -> None:
    arguments: Any = (1, "x", [])
    with pytest.raises(UsageError, match=r"not \(1, 'x', \[\]\)"):
        tiered.PassInfo(*arguments)
    info = tiered.PassInfo("x", opt_level=1)
    assert copy.deepcopy(info) == pickle.loads(pickle.dumps(info)) == info
    assert type(info._replace(opt_level=2)) is tiered.PassInfo


def test_a_wrong_name_gets_a_suggestion() -> None:
    with pytest.raises(PassNotFoundError) as caught:
        tiered.get_pass("fold_constnat")
    assert "no pass named 'fold_constnat'; did you mean 'fold_constant'?" in str(caught.value)
    assert f"lists all {len(tiered.pass_names())}" in str(caught.value)
    with pytest.raises(PassNotFoundError, match="did you mean 'fold_constant'"):
        tiered.get_pass("FoldConstnat")


def test_a_glob_that_fits_nothing_is_an_error() -> None:
    with pytest.raises(PassNotFoundError, match="no pass fits 'fold_everything_\\*'"):
        Registry().expand("fold_everything_*")


def test_dependencies_are_transitive_and_in_order(folder: Folder) -> None:
    package, root = folder
    write(root, "a.py", required="['b', 'c']")
    write(root, "b.py", required="['c']")
    write(root, "c.py")
    registry = Registry([package], None)
    needed = registry.dependencies(registry.load("a").info)
    assert [pass_.name for pass_ in needed] == ["c", "b"]


def test_passes_that_require_each_other_are_an_error(folder: Folder) -> None:
    package, root = folder
    write(root, "a.py", required="['b']")
    write(root, "b.py", required="['c']")
    write(root, "c.py", required="['b']")
    registry = Registry([package], None)
    with pytest.raises(UsageError, match="cyclic `required`: b -> c -> b"):
        registry.dependencies(registry.load("a").info)


def test_every_pass_of_the_package_loads() -> None:
    passes = tiered.get_registered_passes()
    assert tuple(passes) == tiered.pass_names()
    assert all(pass_.name == name for name, pass_ in passes.items())


def test_options_are_given_with_the_name() -> None:
    assert str(tiered.get_pass("fold_constant", max_growth="2%")) == "fold_constant{max_growth=2%}"


def test_importing_tiered_imports_no_pass() -> None:
    script = "import sys, tiered; tiered.pass_names(); print(*sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-c", script], text=True).split()
    assert not [module for module in loaded if "_passes." in module]


def test_an_alias_is_no_name_of_another_pass() -> None:
    of_package.check_alias("fold_constant", "fold_constant")
    of_package.check_alias("no_pass_has_this_name", "fold_constant")
    for alias in ("fuse_gelu", "FuseGelu"):
        with pytest.raises(UsageError, match="cannot stand for 'fold_constant': there is a pass"):
            of_package.check_alias(alias, "fold_constant")


def test_a_pass_of_the_index_is_made_once_until_its_file_is_loaded() -> None:
    registry = Registry(index=INDEX)
    made = registry.named("fuse_gelu")
    assert registry.named("fuse_gelu") is made
    loaded = registry.load("fuse_gelu")
    assert registry.named("fuse_gelu") is loaded is not made


def test_a_pass_may_be_made_at_its_first_use() -> None:
    registry = Registry([], None)
    registry.register_later("look", "here", lambda: look)
    for again in (
        lambda: registry.register_later("look", "there", lambda: look),
        lambda: registry.register(other),
    ):
        with pytest.raises(
            UsageError, match=r"^there are two passes 'look': here and (there|.+py)"
        ):
            again()
    assert "look" in registry
    assert 1 not in registry
    assert registry.version == 1
    assert registry.named("look") is registry.load("look") is registry.named("Look") is look
    assert [] not in registry
    assert registry.load_all() == {"look": look}
    registry.unregister("look")
    assert (registry.names(), registry.version) == ((), 2)
    assert not registry.knows("look")
    registry.unregister("look")
    assert registry.register(other).info.name == "look"
    assert registry.version == 4


other = tiered.function_pass(opt_level=0, name="look")(lambda graph, ctx: None)


def test_a_name_may_stand_for_several_passes_of_a_script() -> None:
    registry = Registry([], None)
    for name in ("one", "two"):
        registry.register(tiered.function_pass(opt_level=0, name=name)(lambda graph, ctx: None))
        registry.add_to_alias("Both", name)
    registry.add_to_alias("Both", "two")
    registry.add_to_alias("First", "one")
    assert registry.resolve("Both") == ("one", "two")
    assert registry.knows("Both")
    assert [registry.is_own_alias(name) for name in ("Both", "both", "one")] == [True, False, False]
    with pytest.raises(UsageError, match=r"^'Both' is an alias of one and two; name one of them$"):
        registry.load("Both")
    registry.unregister("one")
    assert registry.resolve("Both") == ("two",)
    assert [registry.is_own_alias(name) for name in ("Both", "First")] == [True, False]
    with pytest.raises(UsageError, match=r"^'T_wo' cannot stand for 'x': there is a pass 'two'$"):
        registry.add_to_alias("T_wo", "x")


def test_what_a_message_says_of_an_unknown_name() -> None:
    registry = Registry([], None)
    registry.register(look)
    lists = r"\(`tiered passes` lists all 1\)$"
    for name, said in (
        ("lok", rf"^no pass named 'lok'; did you mean 'look'\? {lists}"),
        ("zzzz", rf"^no pass named 'zzzz' {lists}"),
        ("LookAt", rf"^no pass named 'LookAt' {lists}"),
        ("FuseLook", rf"^no pass named 'FuseLook'; did you mean 'look'\? {lists}"),
        ("FuseTo", rf"^no pass named 'FuseTo' {lists}"),
        ("constant_foldin", r"^no pass named .*; did you mean 'constant_folding'\? "),
        (next(iter(NO_EQUIVALENT)), f"^{re.escape(no_equivalent(next(iter(NO_EQUIVALENT))))}$"),
        ("fuse_bn", "^no pass named 'fuse_bn': it is an alias of fuse_bn_into_conv and "
                    rf"fuse_bn_into_gemm, which this tiered does not have {lists}"),
    ):  # fmt: skip
        with pytest.raises(PassNotFoundError, match=said):
            registry.resolve(name)
    with pytest.raises(PassNotFoundError, match=rf"^no pass fits 'x\*' {lists}"):
        registry.expand("x*")
    assert registry.expand("l[o]*") == ("look",)


def test_an_entry_point_without_a_distribution_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    point = importlib.metadata.EntryPoint("look", "tests.small:look", "tiered.passes")
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [point, point])
    where = r"entry point 'tests\.small:look' of \?"
    with pytest.raises(UsageError, match=f"^there are two passes 'look': {where} and {where}$"):
        Registry([]).names()


def test_only_entry_points_of_the_group_are_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    class Point:
        name, value = "look", "tests.small:look"
        dist = types.SimpleNamespace(name="some-package")

        def load(self) -> object:
            return 3

    monkeypatch.setattr(
        importlib.metadata, "entry_points", lambda group: [Point()] if group == "mine" else []
    )
    assert Registry([], None).names() == Registry([]).names() == ()
    registry = Registry([], "mine")
    assert registry.names() == ("look",)
    where = "entry point 'tests.small:look' of some-package"
    with pytest.raises(UsageError, match=f"^{where} does not define a pass 'look', as its name"):
        registry.load("look")


def test_a_module_that_is_no_package_has_no_files_of_passes() -> None:
    assert Registry(["string", "no_such_module"], None).names() == ()
    assert [is_glob(name) for name in ("a", "a*", "a?", "[a]")] == [False, True, True, True]


def test_a_pass_without_a_source_is_of_a_script() -> None:
    registry = Registry([], None)
    for _ in range(2):
        made = tiered.function_pass(opt_level=0, name="look")(lambda graph, ctx: None)
        object.__setattr__(made, "info", made.info._replace(source=""))
        if registry.names():
            with pytest.raises(UsageError, match=r"'look': a script and a script$"):
                registry.register(made)
        else:
            registry.register(made)


def test_legalizations_are_those_of_the_index_and_of_scripts() -> None:
    own = of_package.legalizations()
    assert own
    assert all(tiered.get_pass(name).info.legalizes for name in own)
    rule = tiered.rewrite(tiered.op.Neg(tiered.var.x), opt_level=None, legalizes=True)
    registry = Registry([], None)
    registry.register(rule(_absolute))
    registry.register(look)
    assert registry.legalizations() == ("_absolute",)
    assert of_package.expects(own[0])
    assert not of_package.expects("no_pass_has_this_name")
    assert not registry.expects("look")


def _absolute(graph: Any, x: Any) -> Any:
    """Of no meaning."""
    return graph.op.Abs(x)


def test_a_file_is_loaded_without_a_look_into_folders(folder: Folder) -> None:
    package, root = folder
    write(root, "deep/good.py")
    registry = Registry([], None)
    found = registry.load_file(f"{package}.deep.good", "where it is")
    assert found.name == "good"
    assert registry.load_file(f"{package}.deep.good", "elsewhere") is found
    with pytest.raises(PassError, match="'bad' cannot be loaded from bad's: ModuleNotFoundError"):
        registry.load_file(f"{package}.bad", "bad's")
