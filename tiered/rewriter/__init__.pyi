from tiered.graph.queries.op_traits import COMMUTATIVE as COMMUTATIVE
from tiered.rewriter.driver import apply_rule as apply_rule, rewrite_node as rewrite_node
from tiered.rewriter.language import (
    Operator as Operator,
    chain as chain,
    const as const,
    op as op,
    opt as opt,
    rest as rest,
    var as var,
)
from tiered.rewriter.match import (
    Match as Match,
    compile_pattern as compile_pattern,
    find_matches as find_matches,
    match_node as match_node,
)
from tiered.rewriter.pattern import Pattern as Pattern, PatternError as PatternError
from tiered.rewriter.rule import Rule as Rule
from tiered.rewriter.skip import Skip as Skip, Unable as Unable
from tiered.rewriter.subgraphs.graph_search import (
    opset_matching as opset_matching,
    path_matching as path_matching,
    pattern_matching as pattern_matching,
)
from tiered.rewriter.subgraphs.replace_pattern import (
    ReplacedPattern as ReplacedPattern,
    SubgraphMatch as SubgraphMatch,
    SubgraphMatcher as SubgraphMatcher,
    replace_pattern as replace_pattern,
)

__all__: list[str]
