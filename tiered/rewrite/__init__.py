"""Rewriting: the pattern language, the matcher and the driver."""

from tiered.rewrite.driver import Rule, apply_rule
from tiered.rewrite.matcher import Match, match_node
from tiered.rewrite.pattern import (
    COMMUTATIVE,
    Pattern,
    PatternError,
    const,
    op,
    opt,
    rest,
    var,
    variables,
)
from tiered.rewrite.skip import Skip

__all__ = [
    "COMMUTATIVE",
    "Match",
    "Pattern",
    "PatternError",
    "Rule",
    "Skip",
    "apply_rule",
    "const",
    "match_node",
    "op",
    "opt",
    "rest",
    "var",
    "variables",
]
