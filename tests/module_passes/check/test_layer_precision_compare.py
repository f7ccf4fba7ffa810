from tiered import Model, PassContext, get_pass
from tiered.testing import parse

PASS = "layer_precision_compare"
TEXT = """(float[2,3] x) => (float[2,3] y) <float[3,3] w = {{1,0,0,0,1,0,0,0,{}}}>
{{ h = MatMul(x, w) y = Relu(h) }}"""


def remarks(**options: object) -> str:
    model = Model.from_proto(parse(TEXT.format(2)))
    model.origin = parse(TEXT.format(1))
    with PassContext() as ctx:
        get_pass(PASS, **options)(model)
    return str(ctx.remarks)


def test_the_difference_of_each_product_is_a_remark() -> None:
    found = remarks()
    assert "MatMul h: max abs " in found
    assert "1 - cosine " in found
    assert "max abs 0," not in found
    assert "Relu y" not in found


def test_all_layers_are_compared_on_request() -> None:
    assert "Relu y: max abs " in remarks(operators=[])
