"""Other systems' names: each stands for passes that exist, or has a reason why none does."""

import re

import pytest

import tiered
from tiered.passes.interface.registry import registry, snake_case
from tiered.support.aliases import ALIASES, NO_EQUIVALENT, no_equivalent
from tiered.support.errors import PassNotFoundError


def test_no_alias_hides_a_pass_or_stands_for_two_things() -> None:
    squashed = [alias.replace("_", "").replace("-", "").lower() for alias in ALIASES]
    assert len(set(squashed)) == len(squashed)
    assert not set(ALIASES) & set(tiered.pass_names())


@pytest.mark.parametrize("alias", ALIASES)
def test_no_alias_names_a_pass_that_does_not_exist(alias: str) -> None:
    assert [target for target in ALIASES[alias] if target not in tiered.pass_names()] == []
    assert registry.resolve(alias) == ALIASES[alias]


@pytest.mark.parametrize("alias", ALIASES)
def test_an_alias_stands_for_passes_each_once_and_is_none_of_their_spellings(alias: str) -> None:
    targets = ALIASES[alias]
    assert targets
    assert len(set(targets)) == len(targets)
    assert snake_case(alias) not in tiered.pass_names(), "the name needs no entry"


@pytest.mark.parametrize("name", NO_EQUIVALENT)
def test_a_pass_that_onnx_cannot_have_names_the_nearest_one(name: str) -> None:
    assert name not in ALIASES
    message = no_equivalent(name)
    assert message == f"{name} has no equivalent in ONNX: {NO_EQUIVALENT[name]}"
    nearest = re.search(r"[Tt]he nearest(?: pass)? is ([\w.]+)", message)
    assert nearest is not None
    place = nearest[1].rstrip(".")
    if "." not in place:
        assert place in tiered.pass_names()
    with pytest.raises(PassNotFoundError) as failed:
        registry.load(name)
    assert str(failed.value) == message


@pytest.mark.parametrize(
    ("alias", "targets"),
    [
        ("SimplifyFCTranspose", ("fold_constant",)),
        ("FoldScaleAxis", ("backward_fold_scale_axis", "forward_fold_scale_axis")),
        ("eliminate_nop_dropout", ("simplify_inference",)),
        ("fuse_matmul_add_bias_into_gemm", ("fuse_gemm",)),
        ("FoldConstants", ("fold_constant",)),
        ("GemmToMatMul", ("decompose_gemm",)),
    ],
)
def test_passes_of_other_systems_are_found(alias: str, targets: tuple[str, ...]) -> None:
    assert registry.resolve(alias) == targets
