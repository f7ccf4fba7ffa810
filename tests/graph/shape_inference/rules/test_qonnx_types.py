"""Types of QONNX's operators."""

from tests.small import named, parsed


def test_the_result_has_the_dims_of_data_and_scales_and_is_of_float32() -> None:
    for line, expected in (
        ("Quant(x, s, z, b)", "float[4,3]"),
        ("BipolarQuant(x, s)", "float[4,3]"),
        ("Trunc(x, s, z, b, b)", "float[4,3]"),
        ("Trunc(x, z, z, b, s, z, b)", "float[4,3]"),
        ("MultiThreshold(x, s)", "float[3]"),
        ("Quant(d, s, z, b)", "None"),
        ("Quant(x, d, z, b)", "None"),
        ("Quant(x, s, z)", "None"),
    ):
        model = parsed(
            f"""<ir_version: 8, opset_import: ["": 17, "qonnx.custom_op.general": 1]>
            g (float[3] x, double[3] d, float[4,1] s, float z, float b) => (float[?] q) {{
                y = qonnx.custom_op.general.{line}  q = Neg(x) }}"""
        )
        assert str(named(model, "y").type) == expected, line
