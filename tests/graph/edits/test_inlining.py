"""Inlining of bodies and functions, and copies of nodes into other graphs."""

import onnx
import pytest
from onnx import printer

from tiered import Graph, Model, ModelError, Node, Value
from tiered.testing import parse

TEXT = """<ir_version: 10, opset_import: ["" : 21, "local" : 1]>
g (float[2] x, bool c) => (float[2] y) {
    h = local.f(x)
    y = If(c) <
        then_branch = t () => (float[2] a) { a = Relu(h) },
        else_branch = e () => (float[2] b) { b = Neg(x) }
    >
}
<domain: "local", opset_import: ["ai.onnx" : 18]> f (v) => (u) { u = Exp(v) }"""


def content(model: Model) -> bytes:
    return bytes(model.to_proto().SerializeToString(deterministic=True))


def test_a_node_is_not_copied_into_its_own_body() -> None:
    model = Model.from_proto(parse(TEXT))
    (owner,) = model.main.nodes_of("If")
    with pytest.raises(ModelError, match="cannot be copied into a body of its own"):
        owner.bodies[0].copy_nodes([owner], {})


def test_a_copy_reads_the_given_values() -> None:
    model = Model.from_proto(parse(TEXT))
    main, (x, _) = model.main, model.main.inputs
    (owner,) = main.nodes_of("If")
    h = main.values["h"]
    (copy,) = main.copy_nodes([owner], {h: x}, prefix="again")
    assert copy.name == "again/If"
    assert [body.nodes[0].inputs for body in copy.bodies] == [(x,), (x,)]
    assert copy.bodies[0].outputs[0].name == "again/a"
    assert copy.output.shape == (2,)
    model.check_view()


def test_a_body_with_inputs_is_not_dissolved() -> None:
    text = """(float[2] x, int64 n) => (float[2] y) {
        y = Loop(n, , x) <
            body = b (int64 i, bool g, float[2] v) => (bool g, float[2] w) { w = Relu(v) }
        >
    }"""
    model = Model.from_proto(parse(text))
    (owner,) = model.main.nodes
    with pytest.raises(ModelError, match="cannot be dissolved"):
        model.main.dissolve(owner, owner.bodies[0])
    assert len(model.journal) == 0


def test_the_imports_of_a_function_are_written_as_they_are_now() -> None:
    model = Model.from_proto(parse(TEXT))
    first, (function,) = content(model), model.functions
    model.set_opset("other", 3, function)
    model.set_opset("", 19, function)
    imports = model.to_proto().functions[0].opset_import
    written = [(entry.domain, entry.version) for entry in imports]
    assert written == [("ai.onnx", 19), ("other", 3)]
    model.undo_to(0)
    assert content(model) == first


def test_a_removed_function_releases_its_names() -> None:
    model = Model.from_proto(parse(TEXT))
    first, (function,) = content(model), model.functions
    model.remove(function)
    model.check_view()
    assert model.names.fresh("u") == "u"
    model.undo_to(0)
    model.check_view()
    assert content(model) == first


def test_an_operator_is_the_same_at_another_opset_or_it_is_not() -> None:
    text = "(float[2] x) => (float y) { s = Relu(x) y = ReduceSum<keepdims=0>(s) }"
    model = Model.from_proto(parse(text))
    relu, reduce = model.main.nodes
    assert relu.is_same_at(14)
    assert not relu.is_same_at(6)
    assert not reduce.is_same_at(12)


def test_training_nodes_are_found_at_any_depth() -> None:
    proto = parse(TEXT)
    proto.training_info.add().algorithm.CopyFrom(proto.graph)
    found = [node.op_type for node in Model.from_proto(proto).training_nodes()]
    assert sorted(found) == ["If", "Neg", "Relu", "f"]


def test_forgotten_types_are_known_again_after_undo() -> None:
    model = Model.from_proto(parse("(float[N] x) => (float[M] y) { y = Concat<axis=0>(x, x) }"))
    y = model.main.values["y"]
    before = y.type
    model.set_input_shapes({"x": [3]})
    assert y.shape == (6,)
    model.undo_to(0)
    assert y.type == before
    assert isinstance(model.main.inputs[0].type, type(before))
    assert model.main.inputs[0].shape == ("N",)
    onnx.checker.check_model(model.to_proto())


CALLS = """<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
g (float[2] x) => (float[2] y, float[2] z) {
    y = own.f<keep=1>(x, , x)
    [named] z = own.f<keep=0, to=6>(x)
}
<domain: "own", opset_import: ["" : 21, "vendor" : 3]>
f <keep, to: int = 1, gone> (v, w, b) => (u) {
    small = Constant<value_ints=[1,2]>()
    c = Cast<to: int = @to>(v)
    r = ReduceMax<keepdims: int = @keep, noop_with_empty_axes: int = @gone>(c)
    k = Clip(v, w, b)
    t, , s = vendor.Any(r, small, k, w)
    u = If(s) <then_branch = one () => (float[N] a) <float[1] i = {1}> { q = Add(t, i) a = Neg(q) },
               else_branch = two () => (float[N] e) { e = vendor.Same<at: int = @to>(k) }>
}"""
INLINED = """
<
  ir_version: 10,
  opset_import: ["" : 21, "own" : 1, "vendor" : 3]
>
g (float[2] x) => (float[2] y, float[2] z) {
  ["f/Constant"] "f/small" = Constant <value_ints: ints = [1, 2]> ()
  ["f/Cast"] "f/c" = Cast <to: int = 1> (x)
  ["f/ReduceMax"] "f/r" = ReduceMax <keepdims: int = 1> ("f/c")
  ["f/Clip"] "f/k" = Clip (x, "", x)
  ["f/Any"] "f/t", "", "f/s" = vendor.Any ("f/r", "f/small", "f/k")
  ["f/If"] y = If ("f/s") <then_branch: graph = one () => (float[?] "f/a")
    <float[1] "f/i" =  {1}> {
    ["f/Add"] "f/q" = Add ("f/t", "f/i")
    ["f/Neg"] "f/a" = Neg ("f/q")
  }, else_branch: graph = two () => (float[?] "f/e") {
    ["f/Same"] "f/e" = vendor.Same <at: int = 1> ("f/k")
  }>
  ["named/Constant"] "named/small" = Constant <value_ints: ints = [1, 2]> ()
  ["named/Cast"] "named/c" = Cast <to: int = 6> (x)
  ["named/ReduceMax"] "named/r" = ReduceMax <keepdims: int = 0> ("named/c")
  ["named/Clip"] "named/k" = Clip (x)
  ["named/Any"] "named/t", "", "named/s" = vendor.Any ("named/r", "named/small", "named/k")
  ["named/If"] z = If ("named/s") <then_branch: graph = one () => (float[?] "named/a")
    <float[1] "named/i" =  {1}> {
    ["named/Add"] "named/q" = Add ("named/t", "named/i")
    ["named/Neg"] "named/a" = Neg ("named/q")
  }, else_branch: graph = two () => (float[?] "named/e") {
    ["named/Same"] "named/e" = vendor.Same <at: int = 6> ("named/k")
  }>
}
"""


def test_calls_become_the_nodes_of_the_function() -> None:
    model = Model.from_proto(parse(CALLS))
    (function,) = model.functions
    made = [model.main.inline_call(node, function, {}) for node in model.main.nodes]
    operators = ["Constant", "Cast", "ReduceMax", "Clip", "Any", "If"]
    assert [[node.op_type for node in copies] for copies in made] == [operators, operators]
    model.remove(function)
    model.check_view()
    assert printer.to_text(model.to_proto()).split() == INLINED.split()


def test_large_constants_are_shared_and_long_names_are_no_prefixes() -> None:
    for size, is_shared in ((128, False), (129, True)):
        for length, prefix in ((1, "n"), (200, "n" * 200), (201, "f")):
            text = f"""<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
            g (int64 x) => (int64[{size}] y, int64[{size}] z) {{
                [{"n" * length}] y = own.f(x)  z = own.f(x) }}
            <domain: "own", opset_import: ["" : 21]>
            f (v) => (u) {{ k = Constant<value_ints={[1] * size}>()  u = Add(v, k) }}"""
            model = Model.from_proto(parse(text))
            (function,) = model.functions
            shared: dict[tuple[Node, Graph], Value] = {}
            for call in model.main.nodes:
                model.main.inline_call(call, function, shared)
            names = [f"{prefix}/Add", "f/Add"] if prefix != "f" else ["f/Add", "f/Add_1"]
            assert [node.name for node in model.main.nodes_of("Add")] == names
            assert len(model.main.initializers) == len(shared) == is_shared
            assert len(model.main.nodes_of("Constant")) == 2 * (not is_shared)


BRANCHES = """<ir_version: {}, opset_import: ["" : 21, "vendor" : 1, "own" : 1]>
g (float[2] x, bool c) => (float[2] y, float[2] z) <float[2] a> {{
    a = Relu(x)
    [same] y = If(c) <
        then_branch = one () => (float[N] b) <float[1] i = {{1}}, float[K] q, float[M] r> {{
            [same] q = Add(a, i)  , r = vendor.Two(q)  t = vendor.One(r)  [alone] b = vendor.Last(t) }},
        else_branch = two () => (float[2] a2) {{ q = Neg(x)  a2 = Identity(q) }}>
    z = own.f(c, x)
}}
<domain: "own", opset_import: ["" : 21]> f (p, v) => (u) {{
    u = If(p) <then_branch = t () => (float[2] s) <float[1] j = {{2}}> {{ s = Add(v, j) }},
               else_branch = e () => (float[2] o) {{ o = Neg(v) }}> }}"""
DISSOLVED = {
    3: """
<
  ir_version: 3,
  opset_import: ["" : 21, "vendor" : 1, "own" : 1]
>
g (float[2] x, bool c) => (float[2] y, float[2] z)
  <float[2] a, float[K] q_1, float[M] r, float[N] y> {
  a = Relu (x)
  z = own.f (c, x)
  [i] i_output_0 = Constant <value: tensor = float[1] {1}> ()
  [same_1] q_1 = Add (a, i_output_0)
  "", r = vendor.Two (q_1)
  t = vendor.One (r)
  [alone] y = vendor.Last (t)
}
<
  domain: "own",
  opset_import: ["" : 21]
>
f (p, v) => (u) {
  [j] j_output_0 = Constant <value: tensor = float[1] {2}> ()
  u = Add (v, j_output_0)
}""",
    4: """
<
  ir_version: 4,
  opset_import: ["" : 21, "vendor" : 1, "own" : 1]
>
g (float[2] x, bool c) => (float[2] y, float[2] z)
  <float[1] i =  {1}, float[2] a, float[K] q_1, float[M] r, float[N] y> {
  a = Relu (x)
  z = own.f (c, x)
  [same_1] q_1 = Add (a, i)
  "", r = vendor.Two (q_1)
  t = vendor.One (r)
  [alone] y = vendor.Last (t)
}
<
  domain: "own",
  opset_import: ["" : 21]
>
f (p, v) => (u) {
  [j] j_output_0 = Constant <value: tensor = float[1] {2}> ()
  u = Add (v, j_output_0)
}""",
}


@pytest.mark.parametrize("ir", DISSOLVED)
def test_the_nodes_of_a_branch_take_the_place_of_the_node(ir: int) -> None:
    model = Model.from_proto(parse(BRANCHES.format(ir)))
    for graph in (model.main, *model.functions):
        (node,) = graph.nodes_of("If")
        assert graph.dissolve(node, node.bodies[0])
    model.check_view()
    assert printer.to_text(model.to_proto()).split() == DISSOLVED[ir].split()


LOOP = """<ir_version: 10, opset_import: ["" : 21, "vendor" : 1]>
g (float[2] x, int64 n) => (float[2] y, float[N,2] ys, float[2] z) <float[2] w = {1,2}, float[2] h> {
    h = Add(x, w)
    y, ys, yy = Loop(n, , x) <
        body = b (int64 i, bool g, float[D] v) => (bool g2, float[D] s, float[2] h2)
            <float[1] k = {1}, float[E] t, float[D] v> {
            [named] g2 = Identity(g)  t = Add(v, k)  c = Clip(t, , )  s = Add(t, w)  h2 = Neg(h) }>
    z = vendor.Search(x) <body = c (float[D] s, float[D] outer) => (float[2] y) { y = Add(s, w) }>
}"""
COPIED = """
<
  ir_version: 10,
  opset_import: ["" : 21, "vendor" : 1]
>
g (float[2] x, int64 n) => (float[2] y, float[N,2] ys, float[2] z)
  <float[2] w =  {1,2}, float[2] h, float[2] "p/h"> {
  h = Add (x, w)
  y, ys, yy = Loop (n, "", x) <body: graph = b (int64 i, bool g, float[D] v) => (bool g2, float[D] s, float[2] h2)
    <float[1] k =  {1}, float[E] t, float[D] v> {
    [named] g2 = Identity (g)
    t = Add (v, k)
    c = Clip (t, "")
    s = Add (t, w)
    h2 = Neg (h)
  }>
  z = vendor.Search (x) <body: graph = c (float[D] s, float[D] outer) => (float[2] y) {
    y = Add (s, w)
  }>
  [Loop] y_2, ys_1, yy_1 = Loop (n, "", x) <body: graph = b (int64 i_1, bool g_1, float[?] v_1) => (bool g2_1, float[?] s_1, float[2] h2_1)
    <float[1] k_1 =  {1}, float[?] t_1> {
    [named_1] g2_1 = Identity (g_1)
    [Add] t_1 = Add (v_1, k_1)
    [Clip] c_1 = Clip (t_1, "")
    [Add_1] s_1 = Add (t_1, w)
    [Neg] h2_1 = Neg (x)
  }>
  ["p/Add"] "p/h" = Add (w, w)
  ["p/Loop"] "p/y", "p/ys", "p/yy" = Loop (n, "", w) <body: graph = b (int64 "p/i", bool "p/g", float[?] "p/v") => (bool "p/g2", float[?] "p/s", float[2] "p/h2")
    <float[1] "p/k" =  {1}, float[?] "p/t"> {
    ["p/named"] "p/g2" = Identity ("p/g")
    ["p/Add_1"] "p/t" = Add ("p/v", "p/k")
    ["p/Clip"] "p/c" = Clip ("p/t", "")
    ["p/Add_2"] "p/s" = Add ("p/t", w)
    ["p/Neg"] "p/h2" = Neg ("p/h")
  }>
  ["p/Search"] "p/z" = vendor.Search (w) <body: graph = c (float[?] s, float[?] outer) => (float[2] y) {
    ["p/Add_3"] y = Add (s, w)
  }>
}
"""


def test_nodes_are_copied_with_their_bodies_under_other_names() -> None:
    model = Model.from_proto(parse(LOOP))
    graph, (first, loop, search) = model.main, model.main.nodes
    x, w, h = (graph.values[name] for name in "xwh")
    graph.copy_nodes([loop], {h: x})
    graph.copy_nodes([first, loop, search], {x: w}, prefix="p")
    model.check_view()
    assert printer.to_text(model.to_proto()).split() == COPIED.split()


def test_what_a_body_returns_is_not_absent_in_a_copy() -> None:
    text = """(float[2] x, bool c) => (float[2] y) { h = Neg(x)  y = If(c) <
        then_branch = t () => (float[2] h) { }, else_branch = e () => (float[2] b) { b = Abs(x) }> }"""
    graph = Model.from_proto(parse(text)).main
    (branch,) = graph.nodes_of("If")
    with pytest.raises(ModelError, match="'h' is absent, but it is an input or output of a body"):
        graph.copy_nodes([branch], {graph.values["h"]: None})


def test_a_constant_that_went_is_copied_again_for_the_next_call() -> None:
    text = f"""<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
    g (int64 x) => (int64[129] y, int64[129] z) {{ y = own.f(x)  z = own.f(x) }}
    <domain: "own", opset_import: ["" : 21]>
    f (v) => (u) {{ k = Constant<value_ints={[1] * 129}>()  u = Add(v, k) }}"""
    model = Model.from_proto(parse(text))
    (function,) = model.functions
    shared: dict[tuple[Node, Graph], Value] = {}
    first, second = model.main.nodes
    model.main.inline_call(first, function, shared)
    (constant,) = model.main.initializers
    (reader,) = constant.user_nodes
    model.main.set_input(reader, 1, model.main.inputs[0])
    model.main.remove_constant(constant)
    model.main.inline_call(second, function, shared)
    assert [value.n_users for value in model.main.initializers] == [1]
    model.check_view()


def test_references_stay_in_copies_inside_of_their_function() -> None:
    model = Model.from_proto(parse(CALLS))
    (function,) = model.functions
    cast = function.nodes_of("Cast")[0]
    (copy,) = function.copy_nodes([cast], {})
    assert copy.attribute_protos()["to"].ref_attr_name == "to"
    assert copy.inputs == cast.inputs


def test_a_body_with_annotations_is_not_dissolved() -> None:
    proto = parse(BRANCHES.format(10))
    annotation = proto.graph.node[1].attribute[0].g.quantization_annotation.add(tensor_name="r")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="i")
    model = Model.from_proto(proto)
    (branch,) = model.main.nodes_of("If")
    with pytest.raises(
        ModelError, match="'one' has inputs or annotations, and cannot be dissolved"
    ):
        model.main.dissolve(branch, branch.bodies[0])
