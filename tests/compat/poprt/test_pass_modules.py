"""The modules of PopRT's passes, which have no files."""

import importlib

import pytest

from tests.compat.poprt.test_registry import NAMES, NEWER
from tests.recorded import assert_values
from tiered.compat import poprt
from tiered.compat.poprt.pass_modules import PassModule, class_of
from tiered.testing import parse


def test_classes_have_their_names_and_modules() -> None:
    names = ["Float2Mixed", "Float2FP8", "Float2Half", "ReplaceConsecuiveCastWithNotZero"]
    assert [poprt.get_pass(name).name for name in names] == [
        "float_to_mixed", "float_to_fp8", "float_to_half", "replace_consecutive_cast_with_notzero",
    ]  # fmt: skip
    module = importlib.import_module("tiered.compat.poprt.passes.float_to_half")
    half = module.Float2Half(skip_op_types=["Relu"])
    assert half.lifted().options["skip_op_types"] == ("Relu",)
    assert poprt.passes.float_to_half is module
    assert poprt.passes.Float2Half().name == "float_to_half"
    with pytest.raises(AttributeError, match="has no attribute 'FoldConstant'"):
        module.FoldConstant  # noqa: B018  # raises
    with pytest.raises(AttributeError, match="has no attribute 'no_such_pass'"):
        poprt.passes.no_such_pass  # noqa: B018  # raises
    model = parse("(float[2] x) => (float[2] y) { a = Identity(x) y = Neg(a) }")
    for kind in (
        poprt.passes.ApplyIRPasses,
        importlib.import_module("tiered.compat.poprt.passes.apply_ir_pass").ApplyIrPass,
    ):
        assert len(kind(["eliminate_identity"]).run(model).graph.node) == 1
    check = importlib.import_module("tiered.compat.poprt.passes.check_with_fake_data")
    assert check.CheckWithFakeData(model)(model) == model
    applied = poprt.get_pass("ApplyIrPass", ["eliminate_identity"]).run(model)
    assert [node.op_type for node in applied.graph.node] == ["Neg"]


@pytest.mark.parametrize(
    ("module", "name", "passes"),
    [
        ("apply_ir_pass", "fuse_bn_into_conv", ["fuse_bn_into_conv"]),
        ("apply_ir_pass", "eliminate_nop_transpose", ["eliminate_nop_transpose"]),
        ("workarounds", "BatchNormWorkaround", ["batchnorm_workaround"]),
        ("workarounds", "IndicesWorkaround", ["legalize_indices"]),
        ("manual_sharding", "ManualSharding", ["rewrite_annotated_ops"]),
        ("replace_castlike", "ReplaceCastLike", ["replace_castlike_with_cast"]),
        ("replace_clip_empty_inputs", "ReplaceClipInputs", ["replace_clip_empty_inputs"]),
        ("replace_gemm_with_matmul", "ReplaceGemmWithMatMul", ["decompose_gemm"]),
        ("replace_bn_with_mul_add", "ReplaceBNWithMulAdd", ["replace_bn_with_mul_add"]),
        ("remove_outputs", "RemoveOutputs", ["remove_outputs", "eliminate_deadend"]),
        ("float_to_fp8", "Float2FP8", ["float_to_fp8"]),
        ("int64_to_int32", "Int64ToInt32", ["int64_to_int32"]),
    ],
)
def test_classes_are_in_the_modules_of_poprt(module: str, name: str, passes: list[str]) -> None:
    found = importlib.import_module(f"tiered.compat.poprt.passes.{module}")
    made = getattr(found, name)().lifted()
    assert [leaf.name for leaf in getattr(made, "leaves", lambda: [made])()][
        -len(passes) :
    ] == passes


def test_a_module_of_several_has_passes_only() -> None:
    found = importlib.import_module("tiered.compat.poprt.passes.workarounds")
    with pytest.raises(AttributeError, match="has no attribute 'NoSuchWorkaround'"):
        found.NoSuchWorkaround  # noqa: B018  # raises


def test_each_name_has_its_module() -> None:
    for name in NAMES + NEWER:
        importlib.import_module(f"tiered.compat.poprt.passes.{name}")


@pytest.mark.parametrize(
    ("module", "name", "pass_name"),
    [
        ("double_to_float", "DoubleToFloat", "double_to_float"),
        ("replace_isinf", "ReplaceIsInf", "replace_isinf"),
        ("replace_round", "ReplaceRound", "replace_round"),
        ("sort_graph", "SortGraph", "topological_sort"),
        # PopRT's own names of these two classes.
        ("shape_inference", "ReplacePow", "infer_shapes"),
        ("replace_clip_empty_inputs", "ReplaceHardSwish", "replace_clip_empty_inputs"),
        ("replace_pow", "ReplacePow", "replace_pow"),
        ("replace_hardswish", "ReplaceHardSwish", "replace_hardswish"),
        ("apply_ir_pass", "fuse_bn_into_conv", "fuse_bn_into_conv"),
        ("workarounds", "TopKWorkaround", "normalize_axes"),
    ],
)
def test_classes_of_modules(module: str, name: str, pass_name: str) -> None:
    made = getattr(importlib.import_module(f"tiered.compat.poprt.passes.{module}"), name)()
    assert made.name == pass_name


def test_a_class_is_found_by_a_name_with_a_capital_only() -> None:
    asked: list[str] = []
    made = class_of("FoldConstant", asked.append)
    assert made is not None
    made()
    assert asked == ["FoldConstant"]
    assert class_of("ApplyIrPass", asked.append) is not None
    assert [class_of(name, asked.append) for name in ("fold_constant", "", "NoSuchPass")] == [
        None
    ] * 3


def test_a_module_has_the_names_of_its_pass_only() -> None:
    asked: list[str] = []
    module = PassModule("some.package.constant_folding", asked.append)
    assert module.__doc__ == "The pass constant_folding, by the name of its class."
    for name in ("FoldConstant", "ConstantFolding", "fold_constant"):
        getattr(module, name)()
    assert asked == ["FoldConstant", "ConstantFolding", "fold_constant"]
    for name in ("EliminateIdentity", "NoSuchPass", "ApplyIrPass", "__path__"):
        message = f"module 'some.package.constant_folding' has no attribute '{name}'"
        with pytest.raises(AttributeError, match=message):
            getattr(module, name)
    own = PassModule("remove_outputs", asked.append)
    own.RemoveOutputs()
    assert asked.pop() == "RemoveOutputs"
    with pytest.raises(AttributeError):
        own.ConstInputShape  # noqa: B018  # raises


def test_a_misnamed_class_makes_the_pass_of_its_module() -> None:
    asked: list[str] = []
    PassModule("shape_inference", asked.append).ReplacePow()
    PassModule("replace_pow", asked.append).ReplacePow()
    PassModule("workarounds", asked.append).ReplacePow()
    assert asked == ["shape_inference", "ReplacePow", "ReplacePow"]


def test_names_in_modules_are_recorded() -> None:
    def asked(module: str, name: str) -> object:
        made = getattr(PassModule(f"m.{module}", poprt.get_pass), name)
        return made.func.__name__, made.args

    def of_class(name: str) -> object:
        return getattr(class_of(name, poprt.get_pass), "args", None)

    names = {"asked": asked, "of_class": of_class, "doc": PassModule("m.float_to_half",
             poprt.get_pass).__doc__}  # fmt: skip
    assert_values(__file__, names)
