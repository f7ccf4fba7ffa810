"""Equal hashes for the same computation under other names, and other ones for another."""

import re

import pytest

from tests.small import named, parsed
from tiered.graph import Model
from tiered.graph.queries.structural_hash import fingerprint, structural_hash, value_digests

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
