"""Equal hashes for the same computation under other names, and other ones for another."""

import re

import numpy as np
import onnx
import pytest

from tests.small import named, parsed
from tiered.graph import Model, Tensor
from tiered.graph.queries.structural_hash import (
    _SMALL,
    content_key,
    fingerprint,
    structural_hash,
    value_digests,
)

TEXT = """(float[N,2] x, float[N,2] z) => (float[N,2] y) <float[2] w = {1,2}> {
    a = Add(x, z)  b = Mul(a, w)  y = LeakyRelu(b) }"""


def hash_of(text: str) -> str:
    return structural_hash(parsed(text).main)


@pytest.mark.parametrize(
    ("was", "has"),
    [
        ("b", "other"),
        ("w", "weight"),
        ("N", "M"),
        ("LeakyRelu(b)", "LeakyRelu<alpha = 0.01>(b)"),
        ("<float[2] w = {1,2}> {", "{ w = Constant<value = float[2] {1,2}>() "),
    ],
)
def test_names_and_ways_to_write_do_not_count(was: str, has: str) -> None:
    word = re.escape(was)
    changed = re.sub(rf"\b{word}\b" if was.isalnum() else word, has, TEXT)
    assert changed != TEXT
    assert hash_of(changed) == hash_of(TEXT)


@pytest.mark.parametrize(
    ("was", "has"),
    [
        ("Add(x, z)", "Add(z, x)"),
        ("Add(x, z)", "Add(x, x)"),
        ("Mul(a, w)", "Div(a, w)"),
        ("{1,2}", "{1,3}"),
        ("LeakyRelu(b)", "LeakyRelu<alpha = 0.02>(b)"),
        ("float[N,2] z", "float[M,2] z"),
        ("(float[N,2] y)", "(float[N,2] y, float[N,2] b)"),
    ],
)
def test_another_computation_has_another_hash(was: str, has: str) -> None:
    assert was in TEXT
    assert hash_of(TEXT.replace(was, has)) != hash_of(TEXT)


BODY = """(float[2] x, bool p) => (float[2] y) {
    y = If(p) <then_branch = t () => (float[2] u) { u = Neg(x) },
               else_branch = e () => (float[2] v) { v = Abs(x) }> }"""


def test_bodies_and_functions_count_by_what_they_compute() -> None:
    assert hash_of(BODY) == hash_of(BODY.replace("u", "w"))
    assert hash_of(BODY) != hash_of(BODY.replace("Neg", "Exp"))
    call = """<ir_version: 10, opset_import: ["" : 21, "local" : 1]> g (float[2] x) => (float[2] y)
        { y = local.F(x) } <domain: "local", opset_import: ["" : 21]> F (a) => (b) { b = Neg(a) }"""
    assert hash_of(call) == hash_of(
        call.replace("local.F(x)", "local.G(x)").replace(" F (", " G (")
    )
    assert hash_of(call) != hash_of(call.replace("Neg(a)", "Abs(a)"))


def test_values_that_compute_the_same_have_one_digest() -> None:
    model = parsed(
        """(float[2] x) => (float[2] y) <float[2] v = {1,2}, float[2] w = {1,2}> {
        a = Add(x, v)  b = Add(x, w)  c = Sub(x, w)  y = Sum(a, b, c) }"""
    )
    digests = value_digests(model.main)
    assert digests[named(model, "a")] == digests[named(model, "b")] != digests[named(model, "c")]
    given = {named(model, "v"): "one", named(model, "w"): "other"}
    apart = value_digests(model.main, given)
    assert apart[named(model, "a")] != apart[named(model, "b")]


def _print(text: str) -> bytes:
    return fingerprint(parsed(text))


def test_the_fingerprint_of_a_model_counts_what_a_pass_may_edit() -> None:
    model: Model = parsed(TEXT)
    assert fingerprint(model) == _print(TEXT)
    assert _print(TEXT.replace("b", "other")) == _print(TEXT)
    for was, has in (
        ("LeakyRelu(b)", "LeakyRelu<alpha = 0.01>(b)"),
        ("y = Leaky", "d = Exp(b)  y = Leaky"),
        ("w = {1,2}", "w = {1,2}, float[2] v = {1,2}"),
        ("{1,2}", "{1,3}"),
    ):
        assert _print(TEXT.replace(was, has)) != _print(TEXT), has


HEAD = '<ir_version: 10, opset_import: ["": 21, "own": 1]> g'
CALLED = ' <domain: "own", opset_import: ["": 21]> f (v) => (w) {{ w = {}(v) }}'
ALIKE: list[list[str]] = [
    # Each line has texts of one hash; no two lines have the same.
    ["(float[N,N] x) => (float y) { y = Neg(x) }", "(float[M,M] z) => (float y) { y = Neg(z) }"],
    ["(float[N,M] x) => (float y) { y = Neg(x) }", "(float[M,N] z) => (float y) { y = Neg(z) }"],
    ["(float[2,M] x) => (float y) { y = Neg(x) }"],
    ["(int8[2,M] x) => (int8 y) { y = Neg(x) }"],
    ["(seq(float) x) => (float y) { y = own.F(x) }"],
    ["(seq(int8) x) => (float y) { y = own.F(x) }"],
    ["(float[2] x) => (float y) { y = own.F(x) }", "(float[2] x) => (float y) { a = Neg(x)  y = own.F(x) }"],
    ["(float[2] x) => (float y) { y, z = own.F(x) }"],
    ["(float[2] x) => (float y) { z, y = own.F(x) }"],
    ["(float[2] x) => (float y) { y = own.F(x, , x) }"],
    ["(float[2] x) => (float y) { y = own.F(x, x) }"],
    ["(float[2] x, float[2] w) => (float y) <float[2] w = {1,2}> { y = Add(x, w) }"],
    ["(float[2] x, float[2] w) => (float y) <float[2] w = {1,3}> { y = Add(x, w) }"],
    ["(float[2] x, float[2] w) => (float y) { y = Add(x, w) }"],
    ["(float[2] x) => (float y) { y = own.F<k = 1>(x) }"],
    ["(float[2] x) => (float y) { y = own.F<k = [1]>(x) }"],
    ["(float[2] x) => (float y) { y = own.F<k = [1, 2]>(x) }"],
    ["(float[2] x) => (float y) { y = own.F<k = \"1\">(x) }"],
    ["(float[2] x) => (float y) { y = own.F<k = float[1] {1}>(x) }", "(float[2] x) => (float y) { y = own.F<k = float[1] other {1}>(x) }"],
    ["(float[2] x) => (float y) { y = own.F<k = float[1] {2}>(x) }"],
    ["(float[2] x) => (float y) { y = own.f(x) }" + CALLED.format("Neg"), "(float[2] x) => (float y) { y = own.g(x) }" + CALLED.format("Neg").replace(" f (", " g (")],
    ["(float[2] x) => (float y) { y = own.f(x) }" + CALLED.format("Abs")],
]  # fmt: skip


def test_hashes_are_equal_within_a_line_and_differ_between_lines() -> None:
    found = [{hash_of(f"{HEAD} {text}") for text in texts} for texts in ALIKE]
    assert [len(each) for each in found] == [1] * len(ALIKE)
    assert len(set().union(*found)) == len(ALIKE)
    assert {len(each) for each in set().union(*found)} == {64}


def test_the_opset_counts_where_the_operator_changed() -> None:
    text = "(float[2] x) => (float[2] y) { y = Relu(x) }"
    by_opset = [structural_hash(parsed(text, opset=opset).main) for opset in (12, 13, 14, 21)]
    assert len(set(by_opset)) == 3
    assert by_opset[2] == by_opset[3]


def test_a_captured_value_counts_by_its_name_or_by_what_is_given() -> None:
    of = parsed(
        """(float[2] x, bool p) => (float[2] y) <float[2] w = {1,2}> { a = Neg(x)  y = If(p) <
        then_branch = t () => (float[2] u) { u = Add(a, w) },
        else_branch = e () => (float[2] v) { v = Add(x, w) }> }"""
    )
    one, other = (body for node in of.main.nodes for body in node.bodies)
    assert structural_hash(one) != structural_hash(other)
    a, x, w = (named(of, name) for name in "axw")
    found = [
        value_digests(body, {read: "same", w: "w"})[body.outputs[0]]
        for body, read in ((one, a), (other, x))
    ]
    assert found[0] == found[1]
    main = value_digests(of.main, {x: "the input", w: "w"})
    assert (main[x], main[w]) == ("the input", "w")
    constant = parsed(
        "(float[2] x) => (float[2] y) { k = Constant<value_float=1.0>()  y = Add(x, k) }"
    )
    k = named(constant, "k")
    assert value_digests(constant.main, {k: "k"})[k] == "k"
    assert value_digests(constant.main)[k] != "k"


PRINTED: list[list[str]] = [
    ["(float[2] x) => (float y) { y = Neg(x) }", "(float[3] x) => (float y) { y = Neg(x) }"],
    ["(float[2] x) => (float y) { y = Neg<k = 1>(x) }"],
    ["(float[2] x) => (float y) { y = own.Neg(x) }"],
    ["(float[2] x) => (float y) { k = Constant<value_float=1.0>()  y = Add(x, k) }"],
    ["(float[2] x) => (float y) { k = Constant<value_float=2.0>()  y = Add(x, k) }"],
    ["(float[2] x) => (float y) <float k = {1}> { y = Add(x, k) }", "(float[2] x) => (float y) <float m = {1}> { y = Add(x, m) }"],
    ["(float[2] x) => (float y) <float k = {2}> { y = Add(x, k) }"],
    ["(float[2] x, bool c) => (float y) { y = If(c) <then_branch = t () => (float u) { u = Neg(x) }, else_branch = e () => (float v) { v = Abs(x) }> }",
     "(float[2] x, bool c) => (float y) { y = If(c) <then_branch = one () => (float m) { m = Neg(x) }, else_branch = two () => (float n) { n = Abs(x) }> }"],
    ["(float[2] x, bool c) => (float y) { y = If(c) <then_branch = t () => (float u) { u = Neg(x) }, else_branch = e () => (float v) { v = Exp(x) }> }"],
]  # fmt: skip


def test_prints_are_equal_within_a_line_and_differ_between_lines() -> None:
    found = [{_print(f"{HEAD} {text}") for text in texts} for texts in PRINTED]
    assert [len(each) for each in found] == [1] * len(PRINTED)
    assert len(set().union(*found)) == len(PRINTED)


def test_large_and_sparse_constants_are_printed_by_their_names() -> None:
    def printed(tensor: Tensor, name: str) -> bytes:
        of = parsed("(float[2] x) => (float y) { y = Neg(x) }")
        of.main.add_constant(tensor, name)
        of.main.set_input(of.main.nodes[0], 0, of.main.values[name])
        return fingerprint(of)

    for size, by_name in ((_SMALL, False), (_SMALL + 1, True)):
        zeros, ones = (Tensor.of(np.full(size, number, np.int8)) for number in (0, 1))
        assert (printed(zeros, "k") == printed(ones, "k")) is by_name
        assert (printed(zeros, "k") == printed(zeros, "m")) is not by_name
    weights, places = (onnx.helper.make_tensor(name, 7, [1], [0]) for name in "vi")
    sparse = Tensor(onnx.helper.make_sparse_tensor(weights, places, [3]))
    assert printed(sparse, "k") != printed(sparse, "m")


def test_contents_of_attributes() -> None:
    tensor, equal = (Tensor.of(np.array([1, 2])) for _ in range(2))
    kind = onnx.helper.make_tensor_type_proto(1, [2])
    keys = [content_key(each) for each in (tensor, (tensor, 1), kind, 1, (1,), "1")]
    assert len(set(keys)) == len(keys)
    assert keys[0] == content_key(equal)
    assert keys[1] == content_key((equal, 1))
    assert keys[2] == content_key(onnx.helper.make_tensor_type_proto(1, [2]))
