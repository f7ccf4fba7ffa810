"""Small graphs, grouped by what they compute."""


from tiered.extensions.discovery.enumeration import enumerated
from tiered.extensions.discovery.grammar import BASES

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
