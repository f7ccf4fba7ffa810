"""`diff`: what changed between two models, whatever tool made the second."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import tiered
from tiered.extensions.differences.model_difference import Difference
from tiered.testing import parse

BASE = """(float[n,4] x) => (float[n,4] y) <float[4,4] w = {0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15},
    float[4] k = {1,2,3,4}> {
    [product] p = MatMul(x, w)  [sum] s = Add(p, k)  [cut] r = Relu(s)
    [soft] y = Softmax<axis=1>(r) }"""


def _block(at: int) -> str:
    return f"""[conv{at}] c{at} = Conv(r{at}, w)
        [norm{at}] n{at} = BatchNormalization(c{at}, g, b, m, v)
        [cut{at}] r{at + 1} = Relu(n{at}) """


LAYERS = (
    "(float[1,2,4,4] r0) => (float[1,2,4,4] r3) <float[2,2,1,1] w = {1,2,3,4}, float[2] g = {1,2},"
    " float[2] b = {3,4}, float[2] m = {5,6}, float[2] v = {7,8}> {"
    + "".join(map(_block, range(3)))
    + "}"
)


def diff(first: str, second: str) -> Difference:
    return tiered.diff(parse(first), parse(second))


def notes(found: Difference) -> list[str]:
    return [note for place in found.places for each in place.changes for note in each.notes]


def kinds(found: Difference) -> list[tuple[int, str, str]]:
    return [(len(kind.places), kind.before, kind.after) for kind in found.kinds]


def test_a_model_and_itself_are_the_same() -> None:
    found = diff(BASE, BASE)
    assert found.is_same
    assert (found.same_nodes, found.same_tensors) == (4, 2)
    assert str(found) == "before and after are the same"
    model = tiered.Model.from_proto(parse(BASE))
    assert tiered.diff(model, model).is_same


def test_names_alone_are_names() -> None:
    found = diff(BASE, BASE.replace("[cut] r", "[relu] z").replace("(r)", "(z)"))
    assert [each[1:] for each in found.renamed] == [("node", "cut", "relu"), ("value", "r", "z")]
    assert found.differs_in() == ("2 names",)
    assert found.differs_in(["names"]) == ()


def test_an_attribute_is_a_place() -> None:
    found = diff(BASE, BASE.replace("axis=1", "axis=0"))
    assert notes(found) == ["attribute axis: 1 -> 0"]
    assert found.same_nodes == 3


def test_an_attribute_that_is_written_with_its_default_is_the_same() -> None:
    one = "(float[2] x) => (float[2] y) { y = LeakyRelu(x) }"
    assert diff(one, one.replace("LeakyRelu", "LeakyRelu<alpha = 0.01>")).places == ()


def test_weights_are_compared_by_their_bits() -> None:
    found = diff(BASE, BASE.replace("{0,1,2", "{9,1,2"))
    ((graph, what, before, after, *_),) = found.tensors
    assert (graph, what, before, after) == ("", ("values",), "w", "w")
    assert found.places == ()  # The nodes are the same; their weights are not.


def test_a_zero_of_the_other_sign_is_another_weight() -> None:
    assert diff(BASE, BASE.replace("{0,1,2", "{-0.0,1,2")).tensor_kinds == {"values": 1}


def test_a_renamed_weight_is_found_by_its_content() -> None:
    found = diff(BASE, BASE.replace("w = ", "weight = ").replace("x, w)", "x, weight)"))
    assert [(each.what, each.before, each.after) for each in found.tensors] == [
        (("renamed",), "w", "weight")
    ]
    assert found.places == ()


def test_weights_that_exchange_their_names_are_renamed() -> None:
    found = diff(
        f"(float[4,4] x) => (float[4,4] y) <{_square('a', 0)}, {_square('b', 1)}> {{"
        " p = MatMul(x, a) y = MatMul(p, b) }",
        f"(float[4,4] x) => (float[4,4] y) <{_square('b', 0)}, {_square('a', 1)}> {{"
        " p = MatMul(x, b) y = MatMul(p, a) }",
    )
    assert found.tensor_kinds == {"renamed": 2}
    assert found.places == ()


def _square(name: str, first: int) -> str:
    return f"float[4,4] {name} = {{{','.join(map(str, range(first, first + 16)))}}}"


def test_another_dtype_is_one_change_of_a_weight() -> None:
    half = parse(BASE)
    for tensor in half.graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(
            numpy_helper.to_array(tensor).astype(np.float16), tensor.name
        ))  # fmt: skip
    for port in (*half.graph.input, *half.graph.output):
        port.type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
    found = tiered.diff(parse(BASE), half)
    assert [each.what for each in found.tensors] == [("dtype",), ("dtype",)]
    assert [each.type_after for each in found.ports] == ["float16[n,4]", "float16[n,4]"]
    assert notes(found) == ["computes float -> float16"] * 4


def test_a_constant_node_that_becomes_an_initializer_is_moved() -> None:
    node = "(float[2] x) => (float[2] y) { c = Constant<value = float[2] {1,2}>() y = Add(x, c) }"
    stored = "(float[2] x) => (float[2] y) <float[2] c = {1,2}> { y = Add(x, c) }"
    found = diff(node, stored)
    assert [each.what for each in found.tensors] == [("moved",)]
    assert found.places == ()
    assert found.operators == (("Constant", 1, 0),)


def test_constants_of_equal_content_may_be_merged() -> None:
    two = """(float[2] x) => (float[2] y) <float[2] a = {1,2}, float[2] b = {1,2}> {
        p = Add(x, a) y = Mul(p, b) }"""
    one = two.replace(", float[2] b = {1,2}", "").replace("(p, b)", "(p, a)")
    found = diff(two, one)
    assert found.tensor_kinds == {"removed": 1}
    assert found.places == ()


def test_a_folded_constant_takes_the_place_of_nodes() -> None:
    nodes = "(float[2] x) => (float[2] y) <float[2] a = {1,2}> { c = Neg(a) y = Add(x, c) }"
    found = diff(nodes, "(float[2] x) => (float[2] y) <float[2] c = {-1,-2}> { y = Add(x, c) }")
    assert kinds(found) == [(1, "Neg", "nothing")]


def test_a_fusion_is_one_place() -> None:
    bn = """(float[1,2,4,4] x) => (float[1,2,4,4] y) <float[2,2,1,1] w = {1,2,3,4},
        float[2] g = {1,2}, float[2] b = {3,4}, float[2] m = {5,6}, float[2] v = {7,8}> {
        [conv] c = Conv(x, w)  [norm] n = BatchNormalization(c, g, b, m, v)  [cut] y = Relu(n) }"""
    found = tiered.diff(parse(bn), tiered.optimize(parse(bn), opt_level=3))
    assert kinds(found) == [(1, "Conv, BatchNormalization", "Conv")]
    assert found.same_nodes == 1


def test_an_inserted_node_and_its_reader_are_one_place() -> None:
    found = diff(BASE, BASE.replace("[cut] r = Relu(s)", "[neg] t = Neg(s) [cut] r = Relu(t)"))
    assert kinds(found) == [(1, "Relu", "Neg, Relu")]
    assert notes(found) == ["input 0: s of Add -> t of Neg"]


def test_a_removed_node_and_its_reader_are_one_place() -> None:
    found = diff(BASE.replace("[cut] r = Relu(s)", "[neg] t = Neg(s) [cut] r = Relu(t)"), BASE)
    assert kinds(found) == [(1, "Neg, Relu", "Relu")]


def test_equal_places_are_counted_together() -> None:
    found = tiered.diff(parse(LAYERS), tiered.optimize(parse(LAYERS), opt_level=3))
    assert kinds(found)[0][0] == 3


def test_operands_of_a_sum_may_be_exchanged() -> None:
    found = diff(BASE, BASE.replace("Add(p, k)", "Add(k, p)"))
    assert notes(found) == ["inputs exchanged"]
    difference = BASE.replace("Add(p, k)", "Sub(p, k)")
    found = diff(difference, difference.replace("Sub(p, k)", "Sub(k, p)"))
    assert notes(found) == ["input 0: p of MatMul -> k", "input 1: k -> p of MatMul"]


def test_names_of_another_export_are_not_trusted() -> None:
    """The numbers of each value are other ones; the nodes are found by what they compute."""
    first = "(float[2] x) => (float[2] y) { %s }"
    ops = ["Neg", "Relu", "Abs", "Exp", "Relu", "Neg", "Sqrt", "Abs", "Sigmoid", "Tanh"]
    found = diff(first % _chain(ops, 1), first % _chain([*ops[:6], "Floor", *ops[6:]], 4))
    assert kinds(found) == [(1, "Sqrt", "Floor, Sqrt")]
    assert found.same_nodes == 9


def _chain(ops: list[str], number: int) -> str:
    names = ["x", *(f"v{number + at}" for at in range(len(ops) - 1)), "y"]
    return " ".join(
        f"{after} = {op}({before})"
        for op, before, after in zip(ops, names, names[1:], strict=False)
    )


def test_the_interface_is_compared_by_name() -> None:
    first = "(float[n] x, float[n] old) => (float[n] y, float[n] z) { y = Add(x, old) z = Neg(x) }"
    second = "(float[2] x, float[n] new) => (float[n] z, float[n] y) { y = Add(x, new) z = Neg(x) }"
    found = diff(first, second)
    assert [(each.kind, each.before, each.after, each.note) for each in found.ports] == [
        ("input", "x", "x", ""),
        ("input", "old", "new", ""),
        ("output", "y", "y", "place 0 -> 1"),
        ("output", "z", "z", "place 1 -> 0"),
    ]
    assert found.places == ()


def test_outputs_that_exchange_their_meaning_are_seen() -> None:
    first = "(float[n] x) => (float[n] y, float[n] z) { y = Abs(x) z = Neg(x) }"
    found = diff(first, "(float[n] x) => (float[n] y, float[n] z) { z = Abs(x) y = Neg(x) }")
    assert [each.note for each in found.ports] == ["computed by another node"] * 2


def test_versions_and_texts_are_properties() -> None:
    first, second = parse(BASE), parse(BASE)
    first.producer_name = "one"
    second.doc_string = "a text"
    second.opset_import[0].version -= 1
    second.graph.name = "other"
    onnx.helper.set_model_props(second, {"who": "me"})
    second.graph.node[0].doc_string = "of a node"
    found = tiered.diff(first, second)
    version = first.opset_import[0].version
    assert set(found.settings) == {
        ("producer name", "one", ""),
        ("doc string", "", "a text"),
        ("metadata who", "", "me"),
        ("opset ai.onnx", str(version), str(version - 1)),
        ("graph name", first.graph.name, "other"),
    }
    assert found.texts == 1


def test_bodies_are_compared() -> None:
    text = """(float[2] x, bool c) => (float[2] y) {{ a = Neg(x)
        y = If(c) <then_branch = t () => (float[2] p) {{ p = {}(a) }},
                   else_branch = e () => (float[2] q) {{ q = Exp(a) }}> }}"""
    found = diff(text.format("Abs"), text.format("Relu"))
    ((place),) = found.places
    assert place.graph.endswith(".then_branch")
    assert place.kind == ("Abs", "Relu", "")
    assert found.same_nodes == 3


def test_functions_are_compared() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "f" : 1]>
        g (float[2] x) => (float[2] y) {{ y = f.twice(x) }}
        <domain: "f", opset_import: ["" : 21]> {} (a) => (b) {{ c = {}(a) b = Add(c, c) }}"""
    first, second, third = (
        onnx.parser.parse_model(text.format(*words))
        for words in (("twice", "Neg"), ("twice", "Abs"), ("thrice", "Neg"))
    )
    found = tiered.diff(first, second)
    assert [(place.graph, *place.kind[:2]) for place in found.places] == [
        ("f::twice", "Neg", "Abs")
    ]
    third.graph.node[0].op_type = "thrice"
    assert tiered.diff(first, third).functions == (("f::twice", "removed"), ("f::thrice", "added"))


def test_provenance_joins_what_was_made_from_what(tmp_path: Path) -> None:
    gelu = """(float[n,4] x) => (float[n,4] y) <float root = {1.4142135}, float one = {1},
        float half = {0.5}> { [a] d = Div(x, root) [b] e = Erf(d) [c] g = Add(e, one)
        [d] m = Mul(x, g) [e] h = Mul(m, half) [f] y = Neg(h) }"""
    with tiered.PassContext(opt_level=3, config={"provenance.metadata": True}):
        found = tiered.diff(parse(gelu), tiered.optimize(parse(gelu), opt_level=3))
    assert kinds(found) == [(1, "Div, Erf, Add, 2 Mul", "Gelu")]


def test_external_weights_of_one_file_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = parse(BASE)
    for tensor in model.graph.initializer:  # only raw data becomes external
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor), tensor.name))
    onnx.save(model, tmp_path / "a.onnx", save_as_external_data=True, size_threshold=0,
              location="weights")  # fmt: skip
    again = onnx.load(tmp_path / "a.onnx", load_external_data=False)
    again.graph.node[-1].attribute[0].i = 0
    onnx.save(again, tmp_path / "b.onnx")
    monkeypatch.setattr(tiered.Tensor, "numpy", _never)
    found = tiered.diff(tmp_path / "a.onnx", tmp_path / "b.onnx")
    assert found.tensors == ()
    assert notes(found) == ["attribute axis: 1 -> 0"]


def _never(_: tiered.Tensor) -> None:
    raise AssertionError("the elements of a tensor were read")


@pytest.mark.parametrize("seed", range(8))
def test_an_edit_is_never_hidden(seed: int) -> None:
    """A random chain with one operator replaced differs there, whatever the names are."""
    rng = np.random.default_rng(seed)
    ops = [str(op) for op in rng.choice(["Neg", "Abs", "Relu", "Exp"], 12)]
    other = list(ops)
    other[int(rng.integers(12))] = "Tanh"
    text = "(float[2] x) => (float[2] y) { %s }"
    found = diff(text % _chain(ops, 1), text % _chain(other, int(rng.integers(1, 4))))
    assert sum(len(place.after) for place in found.places) >= 1
    assert any("Tanh" in place.kind[1] for place in found.places)


def test_the_data_is_plain() -> None:
    import json

    found = diff(BASE, BASE.replace("axis=1", "axis=0"))
    data = json.loads(json.dumps(found.to_dict()))
    assert data["places"][0]["changes"][0]["notes"] == ["attribute axis: 1 -> 0"]
    assert data["same"] is False


def test_metadata_and_texts_of_nodes_are_texts() -> None:
    for change in ("doc", "metadata"):
        other = parse(BASE)
        if change == "doc":
            other.graph.node[0].doc_string = "a text"
        else:
            other.graph.node[0].metadata_props.add(key="a", value="text")
        found = tiered.diff(parse(BASE), other)
        assert not found.is_same
        assert any("text" in what for what in found.differs_in())
        assert found.places == ()


NUMBERS = ",".join(map(str, range(15)))
SHORT = {
    "G ": "(float[4] x) => (float[4] y) ",
    "W0": f"{{{NUMBERS},15}}",
    "W1": f"{{{NUMBERS},99}}",
}


def whole(text: str) -> onnx.ModelProto:
    """Return a model of the file of differences."""
    for short, long in SHORT.items():
        text = text.replace(short, long)
    return onnx.parser.parse_model(text) if text.startswith("<") else parse(text)


def told(found: Difference) -> str:
    """Return all that a difference says."""
    lines = [f"{each.what}: {each.before} -> {each.after}" for each in found.settings]
    for port in found.ports:
        words = (port.kind, port.before, port.type_before, "->", port.after, port.type_after)
        lines.append(" ".join(filter(None, (*words, port.note and f"({port.note})"))))
    lines += [f"{name} {what}" for name, what in found.functions]
    lines += [
        f"{each.graph or 'main'} constant {', '.join(each.what)}: {each.before} {each.type_before} "
        f"{each.bytes_before} -> {each.after} {each.type_after} {each.bytes_after}"
        for each in found.tensors
    ]
    for place in found.places:
        before, after = (
            " ".join(f"{node.label}={node.op_type}" for node in side) or "nothing"
            for side in (place.before, place.after)
        )
        lines.append(f"{place.graph or 'main'} at {place.at}: {before} -> {after}")
        lines += [
            f"  {each.before.label}, {each.after.label}: {'; '.join(each.notes)}"
            for each in place.changes
        ]
    lines += [
        f"{each.graph or 'main'} {each.kind} {each.before} -> {each.after}"
        for each in found.renamed
    ]
    same = f"{found.same_nodes} nodes, {found.same_tensors} constants, {found.texts} texts"
    return "\n".join([*lines, same])


def test_all_that_differences_say() -> None:
    """The file has two models and what differs, for each of many pairs."""
    blocks = Path(__file__).with_name("differences.txt").read_text(encoding="utf-8").split("\n\n")
    for block in blocks:
        before, after, expected = block.rstrip("\n").split("\n", 2)
        assert told(tiered.diff(whole(before), whole(after))) == expected, f"{before}\n{after}"


def test_files_are_named_by_their_path_or_their_place(tmp_path: Path) -> None:
    path = tmp_path / "a.onnx"
    onnx.save(parse(BASE), path)
    loaded, other = tiered.Model.load(path), tiered.Model.from_proto(parse(BASE))
    for first, second, expected in (
        (path, str(path), (str(path), str(path))),
        (loaded, other, (str(path), "after")),
        (other, loaded, ("before", str(path))),
        (parse(BASE), parse(BASE), ("before", "after")),
    ):
        assert tiered.diff(first, second).files == expected


def test_versions_of_domains_and_overloads_have_their_names() -> None:
    header = '<ir_version: 10, opset_import: ["" : 21, "f" : %d]>'
    text = (
        header + " g (float[2] x) => (float[2] y) { y = f.twice(x) }"
        ' <domain: "f", opset_import: ["" : 21, "own" : %d]> twice (a) => (b) { b = Add(a, a) }'
    )
    first, second = (onnx.parser.parse_model(text % (at, at)) for at in (1, 2))
    for model in (first, second):
        model.functions[0].overload = model.graph.node[0].overload = "o"
    second.training_info.add().initialization.name = "t"
    found = tiered.diff(first, second)
    assert [tuple(each) for each in found.settings] == [
        ("opset f", "1", "2"),
        ("opset own of f::twice:o", "1", "2"),
        ("training info 0", "", "5 bytes, f1d68793"),
    ]
