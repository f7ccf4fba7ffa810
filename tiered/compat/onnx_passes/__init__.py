"""The names of onnx-passes: its pass classes, `register`, `collect`, `verify`.

`pass_of(cls)` converts a class into a pass of tiered. `model` is a `tiered.Model`, edited in place.
`op` is the pattern language in `pattern`, and `graph.op` in `rewrite`; both take `_outputs` and
`_domain`. A registered class or group has its name everywhere: in `Sequential`, in `optimize`, and
with `--load` on the command line.

    @verify.equality
    @register("cleanup")
    class DropIdentity(RewriteRulePass):
        def pattern(self, op, x):
            return op.Identity(x)

        def rewrite(self, op, x):
            return x
"""

import sys

from tiered.support.loading import load_later

__getattr__, __dir__ = load_later(__name__)
for _place in ("passes", "passes.base", "passes.compose"):
    # `import tiered.compat.onnx_passes.passes as passes`, as onnx-passes has its modules.
    sys.modules.setdefault(f"{__name__}.{_place}", sys.modules[__name__])
