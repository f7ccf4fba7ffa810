"""Which weights are sparse enough."""

from tests.recorded import assert_values
from tests.small import parsed
from tiered import Model, get_pass
from tiered.compat.tvm.sparse_dense import process_params


def found(text: str, block: tuple[int, int] = (1, 2), share: float = 0.5, **more: str) -> object:
    """Return the weights of products that are sparse enough."""
    return tuple(process_params(_model(text, **more), None, block, share))


def _model(text: str, inputs: str = "float[4,4] x") -> Model:
    constants = ", ".join(
        f"float[4,4] {name} = {{{','.join(map(str, array))}}}"
        for name, array in {
            "half": [1, 1, 0, 0] * 4,
            "dense": [1] * 16,
            "zero": [0] * 16,
            "more": [0, 1, 0, 0, 0, 0, 0, 0] * 2,
        }.items()
    )
    return parsed(f"({inputs}) => (y) <{constants}, float[4] row = {{0,0,0,0}}> {{ {text} }}")


def test_weights_of_products_are_judged_by_their_blocks() -> None:
    few = ",".join(["1", *["0"] * 63])
    sparse = parsed(f"""(float[1,8] x) => (float[1,8] y) <float[8,8] w = {{{few}}}>
        {{ y = MatMul(x, w) }}""")
    get_pass("dense_to_sparse").apply(sparse)
    weight = sparse.main.values["w"]
    assert (weight.is_constant, weight.const) == (True, None)
    names = {"sparse": sparse, "found": found, "process_params": process_params, "model": _model}
    assert_values(__file__, names)
