"""The work of a kernel: multiply-adds, bytes, and weights that it packed."""

import math

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import tiered
from tiered.extensions.measurement.profile.executed_work import Work, machine_of, probe, probe_feeds
from tiered.extensions.measurement.profile.kernel_events import (
    Events,
    Kernel,
    Key,
    ProfiledRun,
    Shape,
)
from tiered.graph import Model
from tiered.testing import parse


def kernel(inputs: list[tuple[int, ...]], output: tuple[int, ...], op_type: str = "Gemm") -> Kernel:
    shapes = tuple(Shape("float", dims) for dims in inputs)
    nbytes = sum(4 * math.prod(dims) for dims in (*inputs, output))
    return Kernel("n", op_type, "CPU", shapes, (Shape("float", output),), nbytes, False)


def work(text: str, **weights: tuple[int, ...]) -> Work:
    model = parse(text)
    for name, dims in weights.items():
        model.graph.initializer.append(numpy_helper.from_array(np.ones(dims, np.float32), name))
    model.graph.node[0].name = "n"
    return Work(Model.from_proto(model))


GEMM = "(float[N,8] x) => (float[N,4] y) <float w, float b> { y = Gemm(x, w, b) }"


def test_weights_that_a_kernel_packs_are_part_of_its_work() -> None:
    # Of constants, onnxruntime's profile lists only those that the kernel did not pack.
    model = parse("""(float[2,8] x, uint8[2,8] q) => (float[2,4] y, uint8[2,4] z)
        <float v, float[4] b = {1,2,3,4}, float s = {0.5}, uint8 p = {3}, uint8 w>
        { m = Gemm(x, v, b)  y = Relu(m)  z = QLinearMatMul(q, s, p, w, s, p, s, p) }""")
    for name, kind in (("v", np.float32), ("w", np.uint8)):
        model.graph.initializer.append(numpy_helper.from_array(np.ones((8, 4), kind), name))
    (found,) = tiered.profile(model, runs=1).models
    work = {node.op_type: (node.multiply_adds, node.nbytes) for node in found.nodes}
    assert work == {
        "FusedGemm": (2 * 8 * 4, 4 * (2 * 8 + 8 * 4 + 4 + 2 * 4)),
        "QLinearMatMul": (2 * 8 * 4, 2 * 8 + 8 * 4 + 2 * 4 + 3 * (4 + 1)),
    }


@pytest.mark.parametrize(
    ("listed", "packed"),
    [([(2, 8), (8, 4), (4,)], 0), ([(2, 8), (4,)], 32), ([(2, 8)], 36), ([(2, 8), (8, 4)], 4)],
)
def test_constants_that_are_not_listed_were_packed(
    listed: list[tuple[int, ...]], packed: int
) -> None:
    found, ran = work(GEMM, w=(8, 4), b=(4,)), kernel(listed, (2, 4))
    assert found.of(ran) == 2 * 8 * 4
    assert found.nbytes(ran) == ran.nbytes + 4 * packed


@pytest.mark.parametrize("listed", [[], [(2, 8)] * 4])
def test_shapes_that_fit_no_inputs_make_nothing_known(listed: list[tuple[int, ...]]) -> None:
    found, ran = work(GEMM, w=(8, 4), b=(4,)), kernel(listed, (2, 4))
    assert found.nbytes(ran) == ran.nbytes


@pytest.mark.parametrize("op_type", ["Gemm", "MatMul"])
def test_a_kernel_that_no_graph_has_has_no_products(op_type: str) -> None:
    ran = kernel([(2, 8), (8, 4), (4,)], (2, 4), op_type)
    none = Work(None)
    assert (none.of(ran), none.nbytes(ran)) == (0, ran.nbytes)
    if op_type == "MatMul":
        assert work(GEMM, w=(8, 4), b=(4,)).of(ran) == 0


def test_the_products_of_bodies_are_those_of_their_own_kernels() -> None:
    found = work("""(float[2,2] x, bool c) => (float[2,2] y) { y = If(c)
        <then_branch = t () => (float[2,2] p) { p = MatMul(x, x) },
         else_branch = e () => (float[2,2] q) { q = Identity(x) }> }""")
    assert found.of(kernel([()], (2, 2), "If")) == 0


def test_the_probe_is_a_model_of_a_large_product_and_a_large_move() -> None:
    onnx.checker.check_model(probe(), full_check=True)
    assert [node.name for node in probe().graph.node] == ["product", "fill", "move", "most"]
    assert {name: array.shape for name, array in probe_feeds().items()} == {"x": (768, 768)}


def test_the_fastest_run_of_the_probe_counts() -> None:
    keys: dict[str, Key] = {name: ((name, at),) for at, name in enumerate(("product", "move"))}
    kernels = {key: kernel([], (), "")._replace(name=name) for name, key in keys.items()}
    times = [{"product": 2.0, "move": 4.0}, {"product": 3.0, "move": 1.0}]
    runs = tuple(ProfiledRun(9.0, {keys[name]: each[name] for name in keys}) for each in times)
    found = machine_of(Events(runs, kernels))
    assert (found.multiply_adds, found.nbytes) == (768**3 / 2.0, 8 * 2**24 / 1.0)
