from tiered.compat.onnx_passes.groups import (
    ComposePass as ComposePass,
    Streamline as Streamline,
    collect as collect,
    pass_of as pass_of,
    register as register,
)
from tiered.compat.onnx_passes.kinds import (
    Analysis as Analysis,
    Annotation as Annotation,
    RewriteRulePass as RewriteRulePass,
    RewriteRuleSetPass as RewriteRuleSetPass,
    Transformation as Transformation,
)
from tiered.compat.onnx_passes.promises import verify as verify
from tiered.support.errors import (
    PassError as PassError,
    PostconditionError as PostconditionError,
    PreconditionError as PreconditionError,
    VerificationError as VerificationError,
)

__all__: list[str]
