from tiered.passes.base import Pass as Pass
from tiered.passes.interface.pass_info import PassInfo as PassInfo, PassResult as PassResult
from tiered.passes.kinds.calling_pass import FunctionPass as FunctionPass, ModulePass as ModulePass
from tiered.passes.kinds.class_pass import (
    NodeMapPass as NodeMapPass,
    PassBase as PassBase,
    PassLike as PassLike,
)
from tiered.passes.kinds.declared import Declared as Declared
from tiered.passes.kinds.decorators import (
    function_pass as function_pass,
    module_pass as module_pass,
    rewrite as rewrite,
)
from tiered.passes.kinds.proto_pass import ProtoPass as ProtoPass, proto_pass as proto_pass
from tiered.passes.kinds.rewrite_pass import RewritePass as RewritePass
from tiered.passes.lookup import (
    get_registered_passes as get_registered_passes,
    pass_names as pass_names,
    register as register,
)
from tiered.rewriter import Skip as Skip, Unable as Unable

__all__: list[str]
