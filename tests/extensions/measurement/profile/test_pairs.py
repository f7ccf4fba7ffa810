"""Two profiles side by side: what belongs together, and what changed most."""

import json

from tests.extensions.measurement.profile.timed import profile_of, timed
from tiered.extensions.measurement.profile.model_profile import Profile
from tiered.extensions.measurement.profile.pairs import Profiles, operators_of


def test_parts_of_a_decomposed_operator_stand_beside_the_fused_one() -> None:
    first = profile_of(
        timed("erf", "Erf", outputs=("e",), inputs=("x",)),
        timed("add", "Add", outputs=("s",), inputs=("e",)),
        timed("mul", "Mul", outputs=("y",), inputs=("s", "x")),
        timed("last", "Neg", outputs=("z",), inputs=("y",)),
    )
    second = profile_of(
        timed("gelu", "Gelu", 0.5, outputs=("y",), inputs=("x",)),
        timed("last", "Neg", outputs=("z",), inputs=("y",)),
    )
    fused, same = Profiles((first, second)).pairs
    assert (fused.name, operators_of(fused.first), operators_of(fused.second)) == (
        "y", "Erf, Add, Mul", "Gelu",
    )  # fmt: skip
    assert (fused.seconds, fused.change) == ((3.0, 0.5), -2.5)
    assert (same.name, same.change) == ("z", 0.0)


def test_provenance_pairs_nodes_whose_tensors_have_other_names() -> None:
    first = profile_of(timed("a", outputs=("p",)), timed("b", outputs=("q",)))
    second = profile_of(
        timed("ab", "Fused", outputs=("r",), origins=("a", "b")), timed("new", outputs=("n",))
    )
    pairs = {operators_of(pair.second): operators_of(pair.first) for pair in
             Profiles((first, second)).pairs}  # fmt: skip
    assert pairs == {"Fused": "2 Add", "Add": ""}


def test_layers_are_compared_by_name() -> None:
    first = profile_of(timed("a", seconds=2.0, layer=("m", "one")), timed("b", layer=("m", "two")))
    second = profile_of(timed("a", seconds=1.5, layer=("m", "one")))
    one, two = Profiles((first, second)).layers(2)[::-1]
    assert (one.name, one.change) == ("m/one", -0.5)
    assert (two.name, two.change, two.second) == ("m/two", -1.0, None)


def test_one_model_has_no_pairs() -> None:
    alone = Profiles((profile_of(timed("a")),))
    assert (alone.pairs, alone.layers()) == ((), ())


def names(first: Profile, second: Profile) -> list[tuple[str, list[str], list[str]]]:
    return [
        (pair.name, [node.name for node in pair.first], [node.name for node in pair.second])
        for pair in Profiles((first, second)).pairs
    ]


def test_nodes_of_one_name_need_one_operator() -> None:
    first = profile_of(timed("n", "Add", outputs=("a",)))
    assert names(first, profile_of(timed("n", "Add", outputs=("b",)))) == [("n", ["n"], ["n"])]
    renamed = profile_of(timed("n", "Mul", outputs=("b",), origins=("m",)))
    assert names(first, renamed) == [("n", ["n"], []), ("n", [], ["n"])]


def test_what_changed_most_comes_first_and_names_decide_between_equals() -> None:
    first = profile_of(*(timed(name, outputs=(name,)) for name in "abc"))
    second = profile_of(
        timed("c", seconds=1.5, outputs=("c",)), timed("b", seconds=0.25, outputs=("b",)),
        timed("a", seconds=0.5, outputs=("a",)),
    )  # fmt: skip
    pairs = Profiles((first, second)).pairs
    assert [(pair.name, pair.change) for pair in pairs] == [("b", -0.75), ("a", -0.5), ("c", 0.5)]


def test_what_has_no_counterpart_stands_with_its_first_reader_or_alone() -> None:
    first = profile_of(
        timed("t", outputs=("t",)), timed("u", outputs=("u",), inputs=("t",)),
        timed("v", outputs=("v",), inputs=("t", "u")), timed("w", outputs=("w",)),
    )  # fmt: skip
    second = profile_of(timed("v", outputs=("v",)), timed("u", outputs=("u",)))
    assert names(first, second) == [
        ("u", ["t", "u"], ["u"]), ("w", ["w"], []), ("v", ["v"], ["v"])
    ]  # fmt: skip


def test_origins_that_two_have_in_common_make_one_pair() -> None:
    first = profile_of(timed("big", outputs=("y",), layer=("m",)))
    second = profile_of(
        timed("p", outputs=("p",), origins=("big",)), timed("q", outputs=("q",), origins=("big",)),
        timed("none", outputs=("",)),
    )  # fmt: skip
    assert names(first, second) == [("big", ["big"], ["p", "q"]), ("none", [], ["none"])]


def test_layers_have_the_depth_of_the_shallower_model() -> None:
    deep = profile_of(timed("a", layer=("m", "one")), timed("b", layer=("m", "two")))
    flat = profile_of(timed("a", seconds=0.5, layer=("m",)), timed("b", layer=("n",)))
    changes = [(each.name, each.change) for each in Profiles((deep, flat)).layers()]
    assert changes == [("m", -1.5), ("n", 1.0)]


def test_operators_are_counted_in_their_order() -> None:
    nodes = [timed("a", "Mul"), timed("b", "Add"), timed("c", "Mul")]
    assert operators_of(nodes) == "2 Mul, Add"
    assert operators_of([]) == ""


def test_all_of_it_is_json() -> None:
    both = Profiles((profile_of(timed("a", layer=("m",))), profile_of()))
    (pair,) = json.loads(json.dumps(both.to_dict()))["pairs"]
    assert pair == {"name": "a", "layer": ["m"], "first": ["a"], "second": [],
                    "seconds": [1.0, 0.0], "change": -1.0}  # fmt: skip
    assert len(both.to_dict()["models"]) == 2
