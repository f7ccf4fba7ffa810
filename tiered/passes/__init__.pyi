from tiered.passes.base import Pass as Pass
from tiered.passes.kinds.calling_pass import FunctionPass as FunctionPass
from tiered.passes.kinds.calling_pass import ModulePass as ModulePass
from tiered.passes.kinds.class_pass import (
    NodeMapPass as NodeMapPass,
)
from tiered.passes.kinds.class_pass import (
    PassBase as PassBase,
)
from tiered.passes.kinds.class_pass import (
    PassLike as PassLike,
)
from tiered.passes.kinds.decorators import (
    Declared as Declared,
)
from tiered.passes.kinds.decorators import (
    function_pass as function_pass,
)
from tiered.passes.kinds.decorators import (
    module_pass as module_pass,
)
from tiered.passes.kinds.decorators import (
    rewrite as rewrite,
)
from tiered.passes.kinds.proto_pass import ProtoPass as ProtoPass
from tiered.passes.kinds.proto_pass import proto_pass as proto_pass
from tiered.passes.kinds.rewrite_pass import RewritePass as RewritePass
from tiered.passes.lookup import get_pass as get_pass
from tiered.passes.lookup import get_registered_passes as get_registered_passes
from tiered.passes.lookup import pass_names as pass_names
from tiered.passes.lookup import register as register
from tiered.passes.pass_info import PassInfo as PassInfo
from tiered.passes.pass_info import PassResult as PassResult
from tiered.rewriter import Skip as Skip

__all__: list[str]
