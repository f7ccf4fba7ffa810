"""Passes by name."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.registered import passes_forgotten
from tests.small import fuse_relu
from tiered import Pass
from tiered.passes.interface.registry import registry
from tiered.passes.lookup import pass_named, pass_names, pass_of, register
from tiered.support.errors import PassNotFoundError, UsageError


def test_a_pass_has_a_canonical_name_and_names_elsewhere() -> None:
    assert pass_of("eliminate_identity") is pass_of("eliminate_identity")
    assert isinstance(pass_named("eliminate_identity"), Pass)
    assert pass_of("FoldConstant").name == pass_of("fold_constant").name == "fold_constant"
    names = pass_names()
    assert list(names) == sorted({*names})
    assert "fold_constant" in names
    assert "FoldConstant" not in names
    for look_up in (pass_of, pass_named):
        with pytest.raises(PassNotFoundError, match="no pass named 'fold_konstant'; did you mean"):
            look_up("fold_konstant")
    with pytest.raises(UsageError, match="SimplifyExpr"):
        pass_of("SimplifyExprPostAlterOp")


def test_a_pass_of_ones_own_is_registered_once() -> None:
    with passes_forgotten():
        assert register(fuse_relu, replace=True) is fuse_relu
        assert pass_of("fuse_relu") is pass_named("fuse_relu") is fuse_relu
        other: Any = SimpleNamespace(info=fuse_relu.info, name="fuse_relu")
        with pytest.raises(UsageError, match="fuse_relu"):
            register(other)


def test_what_is_no_pass_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    found: Any = SimpleNamespace(info=fuse_relu.info)
    monkeypatch.setattr(registry, "load", lambda name: found)
    with pytest.raises(UsageError) as caught:
        pass_of("fuse_relu")
    assert str(caught.value) == "'fuse_relu' is registered as a SimpleNamespace, no Pass"
