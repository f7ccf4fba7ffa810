import numpy as np
import onnx
import pytest

from tiered import Model, get_pass
from tiered.runtime import Session
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "trace_folding"


def test_a_shape_that_is_known_is_a_constant() -> None:
    assert_rewrites(
        PASS,
        "(float[2,3] x) => (float[3,2] y) <int64 one = {1}, int64[1] ax = {0}, int64[1] m1 = {-1}>"
        " { s = Shape(x) d = Gather(s, one) u = Unsqueeze(d, ax) t = Concat<axis=0>(u, m1)"
        " y = Reshape(x, t) }",
        "(float[2,3] x) => (float[3,2] y) <int64[2] t = {3,-1}> { y = Reshape(x, t) }",
    )


def test_one_known_dim_among_symbols_is_enough() -> None:
    assert_rewrites(
        PASS,
        "(float[N,3] x) => (int64 y) <int64 one = {1}> { s = Shape(x) y = Gather(s, one) }",
        "(float[N,3] x) => (int64 y) <int64 y = {3}> {}",
    )


def test_dims_of_the_operand_become_zeros() -> None:
    assert_rewrites(
        PASS,
        "(float[B,S,12] x) => (float[B,S,3,4] y) <int64[2] h = {3,4}, int64[1] z = {0},"
        " int64[1] two = {2}> { s = Shape(x) bs = Slice(s, z, two) t = Concat<axis=0>(bs, h)"
        " y = Reshape(x, t) }",
        "(float[B,S,12] x) => (float[B,S,3,4] y) <int64[4] t = {0,0,3,4}> { y = Reshape(x, t) }",
    )


def test_the_only_unknown_size_is_inferred() -> None:
    assert_rewrites(
        PASS,
        "(float[B,S,12] x) => (float[M,12] y) <int64[1] h = {12}, int64[1] z = {0},"
        " int64[1] one = {1}, int64[1] two = {2}> { s = Shape(x) b = Slice(s, z, one)"
        " q = Slice(s, one, two) m = Mul(b, q) t = Concat<axis=0>(m, h) y = Reshape(x, t) }",
        "(float[B,S,12] x) => (float[M,12] y) <int64[2] t = {-1,12}> { y = Reshape(x, t) }",
    )


def test_a_dim_that_is_written_as_int32_is_still_that_dim() -> None:
    assert_rewrites(
        PASS,
        "(float[N,6] x) => (float[A,2,3] y) <int64[1] z = {0}, int64[1] one = {1},"
        " int32[2] h = {2,3}> { s = Shape(x) i = Cast<to=6>(s) b = Slice(i, z, one)"
        " t = Concat<axis=0>(b, h) u = Cast<to=7>(t) y = Reshape(x, u) }",
        "(float[N,6] x) => (float[A,2,3] y) <int64[3] u = {0,2,3}> { y = Reshape(x, u) }",
    )


def test_equal_sizes_are_computed_once() -> None:
    assert_rewrites(
        PASS,
        "(float[B,4] x) => (float[B] y) <int64 z = {0}, float v = {2}, int64[1] a = {0}>"
        " { r = Relu(x) s = Shape(x) b = Gather(s, z) u = Unsqueeze(b, a)"
        " s2 = Shape(r) b2 = Gather(s2, z) u2 = Unsqueeze(b2, a)"
        " e = Expand(v, u) f = Expand(v, u2) y = Add(e, f) }",
        "(float[B,4] x) => (float[B] y) <int64 z = {0}, float v = {2}, int64[1] a = {0}>"
        " { s = Shape(x) b = Gather(s, z) u = Unsqueeze(b, a)"
        " e = Expand(v, u) f = Expand(v, u) y = Add(e, f) }",
    )


@pytest.mark.parametrize("same", ["Abs(s)", "Max(s, zero)", "Clip(s, zero)", "Max(least, s)"])
def test_no_size_is_negative(same: str) -> None:
    head = "(float[B,4] x) => (int64[2] y)"
    given = f"{head} <int64 zero = {{0}}, int64[2] least = {{-1,4}}>"
    assert_rewrites(PASS, f"{given} {{ s = Shape(x) y = {same} }}", f"{head} {{ y = Shape(x) }}")


@pytest.mark.parametrize("same", ["Max(s, one)", "Min(s, one)", "Abs(n)", "Clip(s, one)"])
def test_sizes_may_be_0_and_their_negatives_may_be_less(same: str) -> None:
    assert_unchanged(
        PASS,
        "(float[B,4] x) => (int64[2] y) <int64 one = {1}>"
        f" {{ s = Shape(x) n = Sub(s, one) y = {same} }}",
    )


@pytest.mark.parametrize(
    "nodes",
    [
        "y = Identity(s) z = Abs(s)",  # one is the first, and cannot have two names
        "z = Relu(s) y = Abs(s)",
    ],
)
def test_two_outputs_keep_their_names(nodes: str) -> None:
    model = parse(f"(float[B,4] x) => (int64[2] y, int64[2] z) {{ s = Shape(x) {nodes} }}")
    made = get_pass(PASS)(model)
    assert [value.name for value in made.graph.output] == ["y", "z"]
    assert len(made.graph.node) == 2
    assert get_pass(PASS)(made) == made


@pytest.mark.parametrize(("width", "folded"), [(4, "0,0,3,4"), (-1, "0,0,3,4")])
def test_a_dim_that_stays_is_copied_where_a_zero_was_a_size(width: int, folded: str) -> None:
    graph = "(float[B,S,12] x) => (float[B,S,3,4] y)"
    assert_rewrites(
        PASS,
        f"{graph} <int64[2] h = {{3,{width}}}, int64[1] z = {{0}}, int64[1] two = {{2}}>"
        " { s = Shape(x) bs = Slice(s, z, two) t = Concat<axis=0>(bs, h)"
        " y = Reshape<allowzero=1>(x, t) }",
        f"{graph} <int64[4] t = {{{folded}}}> {{ y = Reshape(x, t) }}",
    )


def test_sizes_without_a_zero_are_read_in_either_way() -> None:
    graph = "(float[B,6] x) => (float[B,2,3] y) <int64[3] t = {-1,2,3}>"
    assert_rewrites(
        PASS, f"{graph} {{ y = Reshape<allowzero=1>(x, t) }}", f"{graph} {{ y = Reshape(x, t) }}"
    )


def test_sizes_that_an_expand_fills_already_become_ones() -> None:
    assert_rewrites(
        PASS,
        "(float[B,1] x) => (float[B,7] y) <int64[1] z = {0}, int64[1] one = {1},"
        " int64[1] seven = {7}> { s = Shape(x) b = Slice(s, z, one)"
        " t = Concat<axis=0>(b, seven) y = Expand(x, t) }",
        "(float[B,1] x) => (float[B,7] y) <int64[2] t = {1,7}> { y = Expand(x, t) }",
    )


def test_minus_one_is_told_from_a_size_without_knowing_it() -> None:
    # TorchScript's expand: -1 would mean "keep", and a size is never -1.
    assert_rewrites(
        PASS,
        "(float[B,3] x) => (bool[2] y) <int64[2] m = {-1,-1}> { s = Shape(x) y = Equal(s, m) }",
        "(float[B,3] x) => (bool[2] y) <bool[2] y = {0,0}> {}",
    )


def test_a_body_uses_values_of_its_outer_graph() -> None:
    model = Model.from_proto(
        parse(
            "(float[B,4] x, bool c) => (int64[1] y) <int64[1] z = {0}, int64[1] one = {1}>"
            " { s = Shape(x) a = Slice(s, z, one) y = If(c) <then_branch = t () => (int64[1] p)"
            " { q = Shape(x) r = Slice(q, z, one) p = Add(r, r) },"
            " else_branch = e () => (int64[1] p2) { p2 = Mul(a, a) }> }"
        )
    )
    get_pass(PASS).apply(model)
    then_branch = model.main.nodes_of("If")[0].bodies[0]
    assert [node.op_type for node in then_branch.nodes] == ["Add"]
    model.check_view()


@pytest.mark.parametrize(
    "text",
    [
        # allowzero: a 0 is a size.
        "(float[B,0] x) => (float[B,0,4] y) <int64[2] h = {0,4}, int64[1] z = {0},"
        " int64[1] one = {1}> { s = Shape(x) b = Slice(s, z, one) t = Concat<axis=0>(b, h)"
        " y = Reshape<allowzero=1>(x, t) }",
        "(float[0,3] x) => (float[0,2] y) <int64[2] t = {0,2}> { y = Reshape<allowzero=1>(x, t) }",
        # As int32, a product of dims may be another number.
        "(float[B,S,T] x) => (float[M,N,K] y) <int64[1] z = {0}, int64[1] one = {1},"
        " int64[1] two = {2}, int64[1] three = {3}> { s = Shape(x) b = Slice(s, z, one)"
        " q = Slice(s, one, two) r = Slice(s, two, three) m = Mul(b, q) i = Cast<to=6>(m)"
        " j = Cast<to=7>(i) t = Concat<axis=0>(r, j, q) y = Expand(x, t) }",
        # Two unknown sizes.
        "(float[B,S] x, int64[2] t) => (float[M,N] y) { y = Reshape(x, t) }",
        # A division that does not come out even for every dim.
        "(float[B,S] x) => (int64[2] y) <int64[1] two = {2}> { s = Shape(x) y = Div(s, two) }",
        # An interface that keeps its own node.
        "(float[B,S] x) => (int64[2] y) { y = Shape(x) }",
    ],
)
def test_tensors_that_shapes_do_not_determine_stay(text: str) -> None:
    assert_unchanged(PASS, text)


def test_an_overridable_initializer_determines_nothing() -> None:
    assert_unchanged(
        PASS,
        "(float[2,3] x, int64[1] z = {0}) => (int64[1] y) { y = Add(z, z) }",
    )


def test_a_declared_output_that_contradicts_the_run_is_not_believed() -> None:
    model = Model.from_proto(
        parse("(float[B,4] x) => (float[1,4] y, int64[2] s) { y = Relu(x) s = Shape(y) }")
    )
    get_pass(PASS).apply(model)
    assert isinstance(model.to_proto(), onnx.ModelProto)
    assert [node.op_type for node in model.main.nodes] == ["Relu", "Shape"]


@pytest.mark.parametrize("name", ["?", "None", "unknown"])
def test_a_placeholder_for_unknown_dims_is_not_the_name_of_one_size(name: str) -> None:
    source = parse(
        "(float[A,B] x) => (bool y) <int64 z = {0}, int64 one = {1}>"
        " { s = Shape(x) a = Gather(s, z) b = Gather(s, one) y = Equal(a, b) }"
    )
    for dim in source.graph.input[0].type.tensor_type.shape.dim:
        dim.dim_param = name
    model = Model.from_proto(source)
    get_pass(PASS).apply(model)
    assert len(model.main) == 4


def test_large_constants_are_left_to_fold_constant_and_its_budget() -> None:
    assert_rewrites(
        PASS,
        "(int64[100] x) => (int64[N] y) <int64 zero = {0}, int64 one = {1}, int64[1] at = {0}>"
        " { s = Shape(x) n = Squeeze(s, at) r = Range(zero, n, one) y = Add(x, r) }",
        "(int64[100] x) => (int64[N] y) <int64 zero = {0}, int64 n = {100}, int64 one = {1}>"
        " { r = Range(zero, n, one) y = Add(x, r) }",
    )
    assert_unchanged(
        PASS,
        "(int64[100] x) => (int64[N] y) <int64 zero = {0}, int64 n = {100}, int64 one = {1}>"
        " { r = Range(zero, n, one) y = Add(x, r) }",
        because="the constant would make the model grow",
    )


def test_an_unnamed_dim_of_an_input_is_one_size() -> None:
    assert_rewrites(
        PASS,
        "(float[?,?,6] x) => (float[?,?,2,3] y) <int64 z = {0}, int64 one = {1}, int64[1] ax = {0},"
        " int64[2] h = {2,3}> { s = Shape(x) a = Gather(s, z) b = Gather(s, one)"
        " c = Unsqueeze(a, ax) d = Unsqueeze(b, ax) t = Concat<axis=0>(c, d, h) y = Reshape(x, t) }",
        "(float[?,?,6] x) => (float[?,?,2,3] y) <int64[4] t = {0,0,2,3}> { y = Reshape(x, t) }",
    )
    # Two of them are two sizes.
    assert_unchanged(
        PASS,
        "(float[?,?] x) => (float[?,?] y) <int64[2] swapped = {1,0}>"
        " { s = Shape(x) t = Gather(s, swapped) y = Reshape(x, t) }",
    )


PRODUCT = (
    "{head} <int64[1] a = {{0}}, int64[1] b = {{1}}, int64[1] c = {{2}}, int64[1] e = {{3}},"
    " int64[1] three = {{3}}> {{ s = Shape(x) n = Gather(s, a) h = Gather(s, c) w = Gather(s, e)"
    " p = Mul(h, w) {target} {reshape} }}"
)


@pytest.mark.parametrize("channels", ["3", "C"])
def test_a_size_beside_a_product_is_copied(channels: str) -> None:
    head = f"(float[N,{channels},H,W] x) => (float[N,{channels},P] y)"
    size = "three" if channels == "3" else "m"
    made = get_pass(PASS).apply(
        parse(
            PRODUCT.format(
                head=head,
                target=f"m = Gather(s, b) t = Concat<axis=0>(n, {size}, p)",
                reshape="y = Reshape(x, t)",
            )
        )
    )
    (join,) = [node for node in made.graph.node if node.op_type == "Concat"]
    constants = {each.name: onnx.numpy_helper.to_array(each) for each in made.graph.initializer}
    written = [constants[name].tolist() for name in join.input if name in constants]
    assert written == [[0], [3] if channels == "3" else [0]]
    assert not any("n" in node.output for node in made.graph.node)


@pytest.mark.parametrize(
    ("target", "reshape"),
    [
        # Beside a -1, a 0 would be ambiguous; with allowzero it is a size; others read the target.
        ("u = Neg(b) t = Concat<axis=0>(n, p, u)", "y = Reshape(x, t)"),
        ("t = Concat<axis=0>(n, three, p)", "y = Reshape<allowzero=1>(x, t)"),
        ("t = Concat<axis=0>(n, three, p)", "r = Reshape(x, t) q = Shape(t) y = Expand(r, t)"),
        # Another place than that of the dim.
        ("t = Concat<axis=0>(three, n, p)", "y = Reshape(x, t)"),
    ],
)
def test_a_size_that_no_0_copies_stays(target: str, reshape: str) -> None:
    head = "(float[N,3,H,W] x) => (float[K,L,P] y)"
    text = PRODUCT.format(head=head, target=target, reshape=reshape)
    made = get_pass(PASS).apply(parse(text))
    (join,) = [node for node in made.graph.node if node.op_type == "Concat"]
    assert "n" in join.input


def test_a_copied_size_may_be_0() -> None:
    head = "(float[N,3,H,W] x) => (float[N,3,P] y)"
    target = "t = Concat<axis=0>(n, three, p)"
    model = parse(PRODUCT.format(head=head, target=target, reshape="y = Reshape(x, t)"))
    made = get_pass(PASS).apply(model)
    for shape in ((0, 3, 2, 2), (2, 3, 0, 2), (1, 3, 4, 5)):
        x = np.zeros(shape, np.float32)
        (before,), (after,) = (Session(each).run({"x": x}).values() for each in (model, made))
        assert before.shape == after.shape
