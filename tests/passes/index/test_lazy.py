"""Passes made from the index load their file at the first run, and hold it against the index."""

import os

import pytest

import tiered
from tests.small import fuse_relu, model, ops
from tiered import Pass, PassInfo, Skip, rewrite
from tiered.passes import FunctionPass, ModulePass, RewritePass
from tiered.passes.index.entry import Indexed
from tiered.passes.index.lazy import PACKAGE, later_pass, operators_as_text
from tiered.passes.index.table import INDEX
from tiered.passes.interface.registry import registry
from tiered.support.errors import UsageError


def _refusing(graph: tiered.Graph) -> Skip:
    return Skip("not now")


@rewrite(tiered.op.Relu(tiered.op.Relu(tiered.var.x)), opt_level=1, precondition=_refusing)
def fuse_relu_later(graph: tiered.Graph, x: tiered.Value) -> tiered.Value:
    """Two Relus are one, but not now."""
    once: tiered.Value = graph.op.Relu(x)
    return once


GELU = INDEX["fuse_gelu"]


@pytest.mark.parametrize(
    ("listed", "loaded"),
    [
        (GELU._replace(info=GELU.info._replace(opt_level=4)), registry.load("fuse_gelu")),
        (GELU._replace(operators=("Relu",)), registry.load("fuse_gelu")),
        (Indexed("", fuse_relu_later.info, ("Relu",)), fuse_relu_later),
        (Indexed("", fuse_relu_later.info, None), fuse_relu_later),
    ],
)
def test_an_index_that_is_out_of_date_is_an_error(
    listed: Indexed, loaded: Pass, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "load_file", lambda module, path: loaded)
    given = model("g (float[2] x) => (float[2] y) { e = Erf(x)  a = Mul(e, x)  y = Relu(a) }")
    with pytest.raises(UsageError, match=r"\.py(:\d+)? differs from the index .* `make index`"):
        listed.made().apply(given)


def test_the_files_may_be_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "load_file", lambda module, path: fuse_relu)
    listed = Indexed("function_passes", fuse_relu.info, ("Relu",)).made()
    assert listed.info.source != fuse_relu.info.source
    assert ops(listed.apply(model())) == ["Relu", "Neg", "Abs"]


@pytest.mark.parametrize(
    ("kind", "made"), [("rewrite", RewritePass), ("function", FunctionPass), ("module", ModulePass)]
)
def test_a_pass_is_made_of_the_folder_and_the_info_alone(kind: str, made: type[Pass]) -> None:
    info = PassInfo("no_such_pass", opt_level=1, kind=kind)
    pass_ = later_pass("function_passes/nowhere", info, ("Add d::F", "Relu"))
    assert type(pass_) is made
    assert pass_.info.source == os.path.join(
        PACKAGE, "function_passes", "nowhere", "no_such_pass.py"
    )
    assert pass_.body.operators == (
        frozenset({("", "Add"), ("d", "F")}), frozenset({("", "Relu")})
    )  # fmt: skip
    assert later_pass("a", info, None).body.operators is None


@pytest.mark.parametrize(
    ("operators", "text"),
    [
        (None, None),
        ((), ()),
        ((frozenset({("", "Relu"), ("d", "F")}),), ("Relu d::F",)),
        # What holds another set is needed only where that one is.
        ((frozenset({("", "A"), ("", "B")}), frozenset({("", "B")})), ("B",)),
        ((frozenset({("", "B")}), frozenset({("", "B")}), frozenset({("", "A")})), ("A", "B")),
    ],
)
def test_operators_are_written_without_sets_that_hold_others(
    operators: tuple[frozenset[tuple[str, str]], ...] | None, text: tuple[str, ...] | None
) -> None:
    assert operators_as_text(operators) == text


def test_words_may_be_newer_than_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = registry.load("fuse_gelu")
    monkeypatch.setattr(registry, "load_file", lambda module, path: loaded)
    info = GELU.info._replace(law="another law", prose="other words")
    info = info._replace(options=tuple(each._replace(doc="?") for each in info.options))
    assert GELU._replace(info=info).made().body.work is loaded.body.work  # type: ignore[attr-defined]  # a rule
