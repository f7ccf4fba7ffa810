from tiered import Model
from tiered.graph.queries.onnx_errors import first_cause
from tiered.testing import parse

LINE = "(op_type:MatMul, node name: m{}): [ShapeInferenceError] Incompatible dimensions"


def test_only_the_first_cause_is_told() -> None:
    lines = "\n".join(LINE.format(number) for number in range(400))
    said = first_cause(ValueError(f"[ShapeInferenceError] Inference error(s): {lines}\n\n"))
    assert said == f"[ShapeInferenceError] Inference error(s): {LINE.format(0)} (and 399 more)"


def test_a_long_cause_is_cut() -> None:
    said = first_cause(ValueError(f"name {'a' * 30_000} is wrong"))
    assert len(said) < 420
    assert said.startswith("name aaa")
    assert said.endswith("aaa is wrong")


def test_an_error_without_words_has_its_name() -> None:
    assert first_cause(MemoryError()) == "MemoryError"


def test_the_error_of_a_model_is_short() -> None:
    steps = " ".join(f"[m{at}] y{at} = MatMul(x, x)" for at in range(300))
    model = Model.from_proto(parse(f"(float[2,3] x) => (float[2,3] y0) {{ {steps} }}"))
    complaint = model.complaint_as_loaded()
    assert complaint is not None
    assert "node name: m0" in complaint
    assert len(complaint) < 500
