"""The registers of a pattern: one for each name and each node, wherever it occurs."""

from tiered.rewriter import chain, op, var
from tiered.rewriter.pattern import Chain, OpPattern
from tiered.rewriter.registers import RegisterMap


def test_registers_are_given_out_in_order() -> None:
    registers = RegisterMap()
    assert (registers.new(), registers.new(3), registers.size) == (2, 3, 6)
    assert (registers.of_name("x"), registers.of_name("y"), registers.of_name("x")) == (6, 7, 6)
    assert registers.names == [("x", 6), ("y", 7)]


def test_a_node_has_one_register_and_the_conditions_of_each_of_its_outputs() -> None:
    split = op.Split(var.x, axis=0, num_outputs=2).bind("s")
    second = split.out(1).having(rank=1)
    links = chain(op.Neg, op.Abs(var.x)).having(rank=2)
    assert isinstance(split, OpPattern)
    assert isinstance(second, OpPattern)
    assert isinstance(links, Chain)
    registers = RegisterMap()
    assert registers.of_node(split) == registers.of_node(second) == registers.of_node(second) == 2
    assert registers.of_node(links) == 3
    assert registers.names == [("s", 2)]
    assert [found[:2] for found in registers.conditions] == [(2, 1), (3, 0)]


def test_equal_patterns_are_of_one_kind_whatever_their_conditions() -> None:
    registers = RegisterMap()
    patterns = [op.Neg(var.x), op.Neg(var.x), op.Neg(var.y), op.Neg(var.x).having(rank=1)]
    assert [registers.kind(each) for each in patterns if isinstance(each, OpPattern)] == [
        0,
        0,
        1,
        0,
    ]
