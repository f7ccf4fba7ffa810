"""Lines of a model file that passes change, where `assert_rewrites` cannot compare them.

These are metadata of nodes, imports, the order of nodes, the places of weights, and measured
numbers. The pages of the site show the same examples.
"""

from typing import Any, NamedTuple

import onnx
import pytest

from docs.site.examples import Example, example_of
from docs.site.pictures import picture_of
from tests.module_passes.partition.targets import NPU
from tiered.graph.io.save import Storage
from tiered.passes.interface.registry import registry
from tiered.testing import parse


class Golden(NamedTuple):
    """A model, and the lines of its file that a pass changes.

    Attributes:
        before: the model.
        changed: the lines with their signs; spaces and line breaks do not count.
        options: of the pass; the name of a file of `beside` means this file.
        backend: the target, if any.
        storage: of the weights of the model.
        beside: models in other files.
    """

    before: onnx.ModelProto
    changed: str
    options: dict[str, Any] = {}  # noqa: RUF012 - the field of a tuple, never written to
    backend: Any = None
    storage: Storage | None = None
    beside: dict[str, onnx.ModelProto] = {}  # noqa: RUF012 - the field of a tuple, never written to

    def example(self, test: str, file: str) -> Example:
        """Return it as the example of a page."""
        return Example(
            self.before, self.backend, self.options, test, file, self.storage, self.beside
        )


CHAIN = "(float[2] x) => (float[2] y) { a = Neg(x) b = Abs(a) c = Sin(b) y = Neg(c) }"
PRODUCT = "(float[2,2] x) => (float[2,2] y) <float[2,2] w = {1,-2,3,4}> { y = MatMul(x, w) }"
SPARSE = ",".join("3" if place in (9, 40) else "0" for place in range(64))


def _marked(text: str, *targets: str) -> onnx.ModelProto:
    """Return a model with the target of each node; none for an empty string."""
    model = parse(text)
    for node, target in zip(model.graph.node, targets, strict=True):
        if target:
            node.metadata_props.add(key="tiered.compiler", value=target)
    return model


QONNX = '<ir_version: 10, opset_import: ["" : 17, "qonnx.custom_op.general" : 1]> g'
THRESHOLD = "qonnx.custom_op.general.MultiThreshold"

GOLDEN = {
    "auto_insert_remap": Golden(
        parse("(float[2,2] x, float[2,2] w) => (float[2,2] y) { m = MatMul(x, w) y = Relu(m) }"),
        """
        + // metadata of MatMul 'm' in g: tiered.remap = outputs
        """,
    ),
    "overlap_io": Golden(
        parse("(float[2] x) => (float[2] y) { y = Abs(x) }"),
        """
        + // metadata of input 'x': tiered.overlap_io = host_load
        + // metadata of output 'y': tiered.overlap_io = host_store
        """,
    ),
    "range_annotation": Golden(
        parse("(int8[2] x) => (int8[2] y) { a = Abs(x) y = Relu(a) }"),
        """
        + // metadata of Abs 'a' in g: tiered.dtype = int8
        + // metadata of Relu 'y' in g: tiered.dtype = uint7
        """,
    ),
    "fuse_affine_into_threshold": Golden(
        parse(
            f"{QONNX} (float[2,1] x) => (float[2,1] y) "
            f"<float c = {{0.5}}, float[1,3] t = {{-1,1,2}}> "
            f"{{ s = Mul(x, c) y = {THRESHOLD}(s, t) }}"
        ),
        """
        - <float c =  {0.5}, float[1,3] t =  {-1,1,2}>
        + <float[1,3] t_1 =  {-2,2,4}>
        - s = Mul (x, c)
        - y = qonnx.custom_op.general.MultiThreshold (s, t)
        + [y] y = qonnx.custom_op.general.MultiThreshold (x, t_1)
        """,
    ),
    "round_thresholds": Golden(
        parse(
            f"{QONNX} (int8[2,1] x) => (float[2,1] y) <float[1,3] t = {{-1.5,0.25,2}}> "
            f"{{ a = Cast<to=1>(x) y = {THRESHOLD}(a, t) }}"
        ),
        """
        - <float[1,3] t =  {-1.5,0.25,2}>
        + <float[1,3] t_1 =  {-1,1,2}>
        - y = qonnx.custom_op.general.MultiThreshold (a, t)
        + y = qonnx.custom_op.general.MultiThreshold (a, t_1)
        """,
    ),
    "packed_transformer": Golden(
        parse(
            "(float[batch,length,4] x) => (float[batch,length,4] y) "
            "{ t = Transpose<perm=[0,2,1]>(x) s = MatMul(x, t) p = Softmax<axis=-1>(s) "
            "y = MatMul(p, x) }"
        ),
        """
        - g (float[batch,length,4] x) => (float[batch,length,4] y) {
        + g (float[batch,length,4] x, int64[batch,length] sequence_ids) => (float[batch,length,4]
          y)
        + <int64[1] const =  {2}, int64[1] const_1 =  {1}, float const_2 =  {-inf}>
        + {
        - p = Softmax <axis: int = -1> (s)
        + [Unsqueeze] Unsqueeze_output_0 = Unsqueeze (sequence_ids, const)
        + [Unsqueeze_1] Unsqueeze_1_output_0 = Unsqueeze (sequence_ids, const_1)
        + [Equal] Equal_output_0 = Equal (Unsqueeze_output_0, Unsqueeze_1_output_0)
        + [Where] Where_output_0 = Where (Equal_output_0, s, const_2)
        + p = Softmax <axis: int = -1> (Where_output_0)
        """,
    ),
    "annotate_target": Golden(
        parse(CHAIN),
        """
        + // metadata of Neg 'a' in g: tiered.compiler = npu
        + // metadata of Abs 'b' in g: tiered.compiler = npu
        + // metadata of Neg 'y' in g: tiered.compiler = npu
        """,
        backend=NPU,
    ),
    "merge_compiler_regions": Golden(
        _marked(CHAIN, "npu", "npu", "", "npu"),
        """
        + // metadata of Neg 'a' in g: tiered.region = npu_0
        + // metadata of Abs 'b' in g: tiered.region = npu_0
        + // metadata of Neg 'y' in g: tiered.region = npu_1
        """,
    ),
    "rewrite_annotated_ops": Golden(
        parse(CHAIN),
        """
        + // metadata of Neg 'a' in g: tiered.device = npu
        + // metadata of Abs 'b' in g: tiered.device = npu
        + // metadata of Sin 'c' in g: tiered.device = cpu
        + // metadata of Neg 'y' in g: tiered.device = cpu
        """,
        {"sharding": ("b=npu", "y=cpu")},
    ),
    "infer_shapes": Golden(
        parse("(float[2,N] x) => (float[N,2] y) { t = Transpose(x) y = Relu(t) }"),
        """
        - g (float[2,N] x) => (float[N,2] y) {
        + g (float[2,N] x) => (float[N,2] y)
        + <float[N,2] t>
        + {
        """,
        {"annotate": True},
    ),
    "remove_unused_opsets": Golden(
        parse(
            '<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1, "ai.onnx.ml" : 3]> '
            "g (float[2] x) => (float[2] y) { y = Relu(x) }"
        ),
        """
        - opset_import: ["" : 21, "com.microsoft" : 1, "ai.onnx.ml" : 3]
        + opset_import: ["" : 21]
        """,
    ),
    "bake_parameters": Golden(
        parse(PRODUCT),
        """
        - <float[2,2] w>
        + <float[2,2] w =  {1,-2,3,4}>
        - // weight 'w': 16 bytes in before.onnx.data
        """,
        storage=Storage(0),
    ),
    "unbake": Golden(
        parse(PRODUCT),
        """
        - <float[2,2] w =  {1,-2,3,4}>
        + <float[2,2] w>
        + // weight 'w': 16 bytes in after.onnx.data
        """,
        {"min_size": "0"},
    ),
    "dense_to_sparse": Golden(
        parse(
            f"(float[8,8] x) => (float[8,8] y) <float[8,8] w = {{{SPARSE}}}> {{ y = MatMul(x, w) }}"
        ),
        """
        + // weight 'w': float[8,8], sparse, 2 of 64 elements
        """,
    ),
    "float_to_fp8": Golden(
        parse("(float[2,2] a, float[2,2] b) => (float[2,2] y) { y = MatMul(a, b) }"),
        """
        - g (float[2,2] a, float[2,2] b) => (float[2,2] y) {
        - y = MatMul (a, b)
        + g (float[2,2] a, float[2,2] b) => (float[2,2] y)
        + <float a_scale =  {0.125}, float8e4m3fn a_zero_point =  {0}, float b_scale =  {0.125},
          float8e4m3fn b_zero_point =  {0}>
        + {
        + [QuantizeLinear] QuantizeLinear_output_0 = QuantizeLinear (a, a_scale, a_zero_point)
        + [DequantizeLinear] DequantizeLinear_output_0 = DequantizeLinear (QuantizeLinear_output_0,
          a_scale, a_zero_point)
        + [QuantizeLinear_1] QuantizeLinear_1_output_0 = QuantizeLinear (b, b_scale, b_zero_point)
        + [DequantizeLinear_1] DequantizeLinear_1_output_0 = DequantizeLinear
          (QuantizeLinear_1_output_0, b_scale, b_zero_point)
        + y = MatMul (DequantizeLinear_output_0, DequantizeLinear_1_output_0)
        """,
        {"exponent": -3},
    ),
    "float_to_mixed": Golden(
        parse(
            "(float[2,4] x) => (float[2,4] y) <float k = {30000}> "
            "{ a = Relu(x) b = Mul(a, k) y = Tanh(b) }"
        ),
        """
        - a = Relu (x)
        - b = Mul (a, k)
        + [Cast] Cast_output_0 = Cast <to: int = 10> (x)
        + a = Relu (Cast_output_0)
        + [Cast_1] Cast_1_output_0 = Cast <to: int = 1> (a)
        + b = Mul (Cast_1_output_0, k)
        """,
    ),
    "import_qonnx": Golden(
        parse(
            '<ir_version: 8, opset_import: ["" : 17, "qonnx.custom_op.general" : 1]> g (float[2] x)'
            " => (float[2] y) <float s = {0.5}> { y = qonnx.custom_op.general.BipolarQuant(x, s) }"
        ),
        """
        + <
        + domain: "qonnx.custom_op.general",
        + opset_import: ["" : 17]
        + >
        + BipolarQuant (x, scale) => (y)
        + {
        + zero = Constant <value_float: float = 0> ()
        + one = Constant <value_float: float = 1> ()
        + minus = Constant <value_float: float = -1> ()
        + two = Constant <value_float: float = 2> ()
        + is_upper = GreaterOrEqual (x, zero)
        + side = Where (is_upper, one, minus)
        + y = Mul (side, scale)
        + }
        """,
    ),
    "merge_models": Golden(
        parse("(float[2] x) => (float[2] h) { h = Neg(x) }"),
        """
        - g (float[2] x) => (float[2] h) {
        + g (float[2] x) => (float[2] y) {
        + y = Abs (h)
        """,
        {"file": "second.onnx"},
        beside={"second.onnx": parse("(float[2] h) => (float[2] y) { y = Abs(h) }")},
    ),
    "quantize": Golden(
        parse(PRODUCT),
        """
        - <float[2,2] w =  {1,-2,3,4}>
        + <int8[2,2] w_quantized =  {42,-64,127,127}, float[2] w_scale =  {0.023622047,0.031496063},
          int8[2] w_zero_point =  {0,0}, float x_scale =  {0.020282142}, uint8 x_zero_point =
          {122}>
        - y = MatMul (x, w)
        + [x_QuantizeLinear] x_QuantizeLinear_output_0 = QuantizeLinear (x, x_scale, x_zero_point)
        + [x_DequantizeLinear] x_DequantizeLinear_output_0 = DequantizeLinear
          (x_QuantizeLinear_output_0, x_scale, x_zero_point)
        + [w_DequantizeLinear] w_DequantizeLinear_output_0 = DequantizeLinear (w_quantized, w_scale,
          w_zero_point)
        + y = MatMul (x_DequantizeLinear_output_0, w_DequantizeLinear_output_0)
        """,
        {"processor": "vnni"},  # otherwise that of the machine
    ),
    "schedule": Golden(
        parse(
            "(float[64] x) => (float[1] y) <int64[1] axis = {0}> { a = Concat<axis=0>(x, x) "
            "b = Concat<axis=0>(x, x) c = ReduceMean(a, axis) d = ReduceMean(b, axis) "
            "y = Sub(c, d) }"
        ),
        """
        + c = ReduceMean (a, axis)
        - c = ReduceMean (a, axis)
        """,
    ),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_a_pass_changes_these_lines_of_a_file(name: str) -> None:
    info = registry.named(name).info
    example = example_of(info)
    assert example is not None
    assert example.test == "test_a_pass_changes_these_lines_of_a_file"
    diff = picture_of(info, example).diff
    changed = " ".join(f"{line[0]} {line[1:]}" for line in diff if line[0] in "+-")
    assert changed.split() == GOLDEN[name].changed.split()
