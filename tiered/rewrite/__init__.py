"""Rewriting: the pattern language, the matcher and the driver."""

from tiered.rewrite.driver import Rule, apply_rule
from tiered.rewrite.language import Operator, chain, const, op, opt, rest, var
from tiered.rewrite.matcher import Match, compile_pattern, find_matches, match_node
from tiered.rewrite.pattern import COMMUTATIVE, Pattern, PatternError, variables
from tiered.rewrite.search import opset_matching, path_matching, pattern_matching
from tiered.rewrite.skip import Skip
from tiered.rewrite.subgraph import (
    ReplacedPattern,
    SubgraphMatch,
    SubgraphMatcher,
    replace_pattern,
)

__all__ = [
    "COMMUTATIVE",
    "Match",
    "Operator",
    "Pattern",
    "PatternError",
    "ReplacedPattern",
    "Rule",
    "Skip",
    "SubgraphMatch",
    "SubgraphMatcher",
    "apply_rule",
    "chain",
    "compile_pattern",
    "const",
    "find_matches",
    "match_node",
    "op",
    "opset_matching",
    "opt",
    "path_matching",
    "pattern_matching",
    "replace_pattern",
    "rest",
    "var",
    "variables",
]
