"""Two classes of onnx-passes."""

from typing import Any

from tiered.compat.onnx_passes import RewriteRulePass


class DropNeg(RewriteRulePass):
    def pattern(self, op: Any, x: Any) -> Any:
        return op.Abs(op.Neg(x))

    def rewrite(self, op: Any, x: Any) -> Any:
        return op.Abs(x)


class BreakAdds(RewriteRulePass):
    def pattern(self, op: Any, x: Any, y: Any) -> Any:
        return op.Add(x, y)

    def check(self, op: Any, x: Any, y: Any) -> bool:
        return x is not y

    def rewrite(self, op: Any, x: Any) -> Any:
        return op.Add(x, x)
