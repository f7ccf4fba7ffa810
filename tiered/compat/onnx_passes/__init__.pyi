from tiered.compat.onnx_passes.groups import ComposePass as ComposePass
from tiered.compat.onnx_passes.groups import collect as collect
from tiered.compat.onnx_passes.groups import pass_of as pass_of
from tiered.compat.onnx_passes.groups import register as register
from tiered.compat.onnx_passes.kinds import Analysis as Analysis
from tiered.compat.onnx_passes.kinds import Annotation as Annotation
from tiered.compat.onnx_passes.kinds import RewriteRulePass as RewriteRulePass
from tiered.compat.onnx_passes.kinds import RewriteRuleSetPass as RewriteRuleSetPass
from tiered.compat.onnx_passes.kinds import Transformation as Transformation
from tiered.compat.onnx_passes.promises import verify as verify
from tiered.errors import PassError as PassError
from tiered.errors import PostconditionError as PostconditionError
from tiered.errors import PreconditionError as PreconditionError
from tiered.errors import VerificationError as VerificationError

__all__: list[str]
