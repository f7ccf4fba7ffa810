"""Names of several passes, and of pipelines, are looked up as those of one pass."""

import numpy as np
import pytest

import tiered
from tiered import PassContext, UsageError, get_pass
from tiered.runtime import run
from tiered.support.aliases import ALIASES
from tiered.support.errors import PassNotFoundError
from tiered.testing import parse

GELU = "(float[2] x) => (float[2] y) { y = Gelu(x) }"


@pytest.mark.parametrize("name", ["FastMath", "fast_math", "fast-math"])
def test_a_name_of_several_passes_is_a_pipeline(name: str) -> None:
    found = get_pass(name)
    assert isinstance(found, tiered.Sequential)
    assert [leaf.name for leaf in found.leaves()] == [
        *("replace_gelu_with_tanh", "replace_erf_with_erfv2"),
        *("replace_pow_with_roots", "replace_div_with_reciprocal"),
        *("fast_softmax", "fast_exp", "fast_tanh"),
    ]
    with PassContext(opt_level=4):
        (node,) = found(parse(GELU)).graph.node
    assert node.attribute[0].s == b"tanh"
    assert tiered.parse_pipeline(found.text) == found


def test_fast_math_leaves_no_exponential() -> None:
    text = "(float[2,3] x) => (float[2,3] a, float[2,3] b, float[2,3] c, float[2,3] d) "
    text += "{ a = Exp(x) b = Tanh(x) c = Softmax(x) d = Erf(x) }"
    before = parse(text)
    after = tiered.optimize(before, passes="FastMath")
    assert not {"Exp", "Tanh", "Softmax", "Erf"} & {node.op_type for node in after.graph.node}
    x = np.linspace(-3, 3, 6, dtype=np.float32).reshape(2, 3)
    expected, actual = (run(model, {"x": x}) for model in (before, after))
    for name, limit in (("a", 1e-5), ("b", 4e-7), ("c", 3e-6), ("d", 3.7e-4)):
        np.testing.assert_allclose(actual[name], expected[name], rtol=limit, atol=limit)


def test_every_alias_and_named_pipeline_is_found() -> None:
    for name in (*ALIASES, "cleanup", "eliminate", "streamline", "default", "convert-opset18"):
        assert get_pass(name).info.name, name


def test_options_are_those_of_one_pass() -> None:
    with pytest.raises(UsageError, match="stands for eliminate_deadend and eliminate_unused_init"):
        get_pass("delete_isolated", threshold=1)
    assert get_pass("streamline", opt_level=3).info.opt_level == 3
    assert get_pass("constant_folding", max_tensor_size=7).options["max_tensor_size"] == 7


@pytest.mark.parametrize("name", ["fuse_*", "nothing", "FastMath,cleanup"])
def test_a_glob_or_a_list_is_no_name(name: str) -> None:
    with pytest.raises(PassNotFoundError, match="no pass named"):
        get_pass(name)
