"""Small graphs, grouped by what they compute."""

import zlib

from tests.extensions.discovery.making import Maker
from tiered.extensions.discovery.enumeration import _results, enumerated
from tiered.extensions.discovery.grammar import BASES, FLOAT, GrammarStep

MATRIX = BASES[0]


def test_the_enumeration_is_deterministic_and_bounded() -> None:
    first, second = (enumerated(MATRIX, "bits", 2, most=300) for _ in range(2))
    texts = [[str(member) for _, member in made.members()] for made in (first, second)]
    assert texts[0] == texts[1]
    other = enumerated(MATRIX, "bits", 2, most=300, seed=1)
    assert [str(member) for _, member in other.members()] != texts[0]


def test_a_class_has_its_cheapest_graph() -> None:
    made = enumerated(MATRIX, "bits", 2, most=300)
    for group, member in made.members():
        assert group.best.cost <= member.cost
        assert made.meaning.key(group.best) == made.meaning.key(member)


def test_all_graphs_of_some_bases() -> None:
    """The representatives by their number of operators, the classes, the members, and a digest."""
    for name, domain, operators, most, seed, levels, classes, members, digest in (
        ("bools", "bits", 0, 1, 0, [1], 3, 0, 2363233923),
        ("integers", "bits", 1, 9, 0, [1, 86], 88, 46, 3637827428),
        ("bools", "bits", 2, 1, 0, [1, 47, 35], 85, 78, 3877101044),
        ("bools", "bits", 2, 61, 0, [1, 47, 35], 85, 78, 3877101044),
        ("bools", "bits", 3, 20, 0, [1, 47, 35, 39], 124, 121, 2035941405),
        ("number", "reals", 2, 30, 0, [1, 92, 125], 219, 137, 3123485351),
    ):
        base = next(each for each in BASES if each.name == name)
        made = enumerated(base, domain, operators, most=most, seed=seed)  # type: ignore[arg-type]  # one
        pairs = [f"{group.best} {member}" for group, member in made.members()]
        lines = [*pairs, *(" ".join(map(str, level)) for level in made.levels)]
        found = zlib.crc32("\n".join(lines).encode())
        counts = [len(level) for level in made.levels], len(made.classes), len(pairs)
        assert (*counts, found) == (levels, classes, members, digest), name


def test_results_of_more_than_512_elements_are_left_out() -> None:
    meaning = Maker().meaning
    for columns, shapes in ((16, [(32, 16)]), (17, [])):
        x = meaning.table.border("x", FLOAT, (16, columns))
        found = _results(meaning, GrammarStep("Concat", (x, x), {"axis": 0}))
        assert [each.shape for each in found] == shapes
