"""Rewriting: the pattern language, the matcher and the driver."""

from tiered.rewrite.driver import Rule, apply_rule
from tiered.rewrite.language import Operator, chain, const, op, opt, rest, var
from tiered.rewrite.matcher import Match, compile_pattern, find_matches, match_node
from tiered.rewrite.pattern import COMMUTATIVE, Pattern, PatternError, variables
from tiered.rewrite.skip import Skip

__all__ = [
    "COMMUTATIVE",
    "Match",
    "Operator",
    "Pattern",
    "PatternError",
    "Rule",
    "Skip",
    "apply_rule",
    "chain",
    "compile_pattern",
    "const",
    "find_matches",
    "match_node",
    "op",
    "opt",
    "rest",
    "var",
    "variables",
]
