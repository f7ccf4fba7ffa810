from tiered.rewriter.driver import (
    apply_rule as apply_rule,
)
from tiered.rewriter.driver import (
    rewrite_node as rewrite_node,
)
from tiered.rewriter.language import (
    Operator as Operator,
)
from tiered.rewriter.language import (
    chain as chain,
)
from tiered.rewriter.language import (
    const as const,
)
from tiered.rewriter.language import (
    op as op,
)
from tiered.rewriter.language import (
    opt as opt,
)
from tiered.rewriter.language import (
    rest as rest,
)
from tiered.rewriter.language import (
    var as var,
)
from tiered.rewriter.match import (
    Match as Match,
)
from tiered.rewriter.match import (
    compile_pattern as compile_pattern,
)
from tiered.rewriter.match import (
    find_matches as find_matches,
)
from tiered.rewriter.match import (
    match_node as match_node,
)
from tiered.rewriter.pattern import (
    COMMUTATIVE as COMMUTATIVE,
)
from tiered.rewriter.pattern import (
    Pattern as Pattern,
)
from tiered.rewriter.pattern import (
    PatternError as PatternError,
)
from tiered.rewriter.rule import Rule as Rule
from tiered.rewriter.skip import Skip as Skip
from tiered.rewriter.subgraphs.graph_search import (
    opset_matching as opset_matching,
)
from tiered.rewriter.subgraphs.graph_search import (
    path_matching as path_matching,
)
from tiered.rewriter.subgraphs.graph_search import (
    pattern_matching as pattern_matching,
)
from tiered.rewriter.subgraphs.replace_pattern import (
    ReplacedPattern as ReplacedPattern,
)
from tiered.rewriter.subgraphs.replace_pattern import (
    SubgraphMatch as SubgraphMatch,
)
from tiered.rewriter.subgraphs.replace_pattern import (
    SubgraphMatcher as SubgraphMatcher,
)
from tiered.rewriter.subgraphs.replace_pattern import (
    replace_pattern as replace_pattern,
)

__all__: list[str]
