"""A normalization in elementary operators: its steps, and the dtype that they compute in."""

from tests.small import named, parsed
from tiered import DataType
from tiered.rewriter.idioms.elementary_norm import standardized

ROOT = "ReduceMean(_ axes) Add(_ epsilon) Sqrt(_)"


def test_a_tensor_is_standardized_in_float_or_wider() -> None:
    cast_centred = f"Cast(x) ReduceMean(_ axes) Sub(_ _) Mul(_ _) {ROOT} Div(_ _) Cast(_)"
    rows = [
        ("float", True, f"ReduceMean(x axes) Sub(x _) Mul(_ _) {ROOT} Div(_ _)", DataType.FLOAT),
        ("double", False, f"Mul(x x) {ROOT} Div(x _)", DataType.DOUBLE),
        ("float16", True, cast_centred, DataType.FLOAT),
        ("bfloat16", False, f"Cast(x) Mul(_ _) {ROOT} Div(_ _) Cast(_)", DataType.FLOAT),
    ]
    for dtype, is_centred, expected, inner in rows:
        model = parsed(f"({dtype}[2,3] x) => ({dtype}[2,3] y) {{ y = Neg(x) }}")
        x = named(model, "x")
        made = standardized(model.main, x, [1], 1e-5, is_centred=is_centred)
        assert (made.dtype, made.shape) == (x.dtype, (2, 3)), dtype
        said = []
        for node in model.main.topological_order():
            names = [value.name for value in node.reads]
            shown = [each if each in ("x", "axes", "epsilon") else "_" for each in names]
            said.append(f"{node.op_type}({' '.join(shown)})")
            if node.op_type == "ReduceMean":
                assert node.attr("keepdims") == 1, dtype
            if node.op_type == "Add":
                assert {value.dtype for value in node.reads} == {inner}, dtype
        said.remove("Neg(x)")
        assert " ".join(said) == expected, dtype
