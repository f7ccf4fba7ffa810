"""Options that take names: one that meets nothing is an error, in every pass."""

from typing import Any

import onnx
import pytest

import tiered
from tiered import TargetError, TieredError, UsageError, get_pass, pass_names
from tiered.testing import parse

NEW = {
    "budget": "a limit",
    "custom": "an operator of the target",
    "domain": "a domain of new functions or operators",
    "fallback_device": "a device",
    "header": "a text",
    "prefix": "a prefix of new names",
    "size": "a dim",
}
"""Options that take a text and name nothing of a model, and what they take."""

FILES = {"file", "origin_model", "inputs"}
"""Options that name files in some passes."""

WORDS: dict[str, Any] = {
    "axes": {"nosuch": 0},
    "bounds": ("nosuch=0:1",),
    "connect": {"nosuch": "x"},
    "desired_layouts": {"MatMul@nosuch*": "NHWC"},
    "dim": {"nosuch": 1},
    "dims": ("nosuch=2",),
    "exponents": ("nosuch=1",),
    "pipelining": ("nosuch=0",),
    "sharding": ("nosuch=left",),
    "shape": {"nosuch": [1, 8]},
    "split": ("nosuch=2",),
    "weight_exponents": ("nosuch=1",),
}
"""The values of options that take more than a name; of a pass, `pass.option`."""

WORDS |= {
    "io_layout.inputs": {"nosuch": "NCHW->NHWC"},
    "io_layout.outputs": {"nosuch": "NCHW->NHWC"},
    "rename.tensors": {"nosuch": "other"},
    "rename.dims": {"nosuch": "other"},
}

BESIDE: dict[str, dict[str, Any]] = {
    "gradient": {"of": ("z",), "seed": "ones"},
    "split_by_budget": {"max_bytes": 1},
}
"""Other options without which a pass does not come to its names."""

MODEL = """<ir_version: 10, opset_import: ["" : 21, "my" : 1]>
g (float[n,8] x, int64[n,4] ids, float[n,8] spare) => (float[n,4,8] y, float[n,8] z) {
  w = Constant<value = float[8,8] {HALVES}>()  h = MatMul(x, w)  a = Relu(h)  z = my.F(a)
  e = Gather(x, ids)  y = Softmax(e)
}
<domain: "my", opset_import: ["" : 21]> F (p) => (q) { q = Sigmoid(p) }
""".replace("HALVES", ", ".join(["0.5"] * 64))


def named_options() -> list[tuple[str, str]]:
    """Return all pairs of a pass and an option of it that names parts of a model."""
    return [
        (name, option.name)
        for name in pass_names()
        if get_pass(name).info.is_built_in
        for option in get_pass(name).info.options
        if "str" in str(option.type)
        and "Literal" not in str(option.type)
        and option.name not in NEW
    ]


@pytest.mark.parametrize(("name", "option"), named_options())
def test_a_name_that_meets_nothing_is_an_error(name: str, option: str, tmp_path: Any) -> None:
    kind = str(next(each.type for each in get_pass(name).info.options if each.name == option))
    simple: Any = "nosuch" if kind == "<class 'str'>" else ("nosuch",)
    if kind.startswith("list"):
        simple = ["nosuch"]
    value = WORDS.get(f"{name}.{option}", WORDS.get(option, simple))
    options = BESIDE.get(name, {}) | {option: value}
    if option == "connect":
        onnx.save(parse(MODEL), tmp_path / "second.onnx")
        options["file"] = str(tmp_path / "second.onnx")
    # A file that is not there has the error of its reader.
    expected = TieredError if option in FILES else (UsageError, TargetError)
    with pytest.raises(expected, match="nosuch"):
        tiered.optimize(parse(MODEL), passes=[get_pass(name, **options)])
