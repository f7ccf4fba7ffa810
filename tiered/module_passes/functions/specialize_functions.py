"""A call with constant attributes or operands  =>  a call of a function that has them inside"""

from tiered import Model, PassContext, module_pass
from tiered.rewriter.idioms.functions.specialization import Specializer


@module_pass(opt_level=None, conflicts=("inline",), touches=("*",))
def specialize_functions(model: Model, ctx: PassContext) -> None:
    """Bind constants of calls, up to 1 KiB each, inside of copies of their local functions.

    Equal calls share a copy, and functions without calls are removed. Folding and the passes of
    Loop and If then see the constants, which `inline` would show them too. It is a part of TVM's
    PartialEvaluate.
    """
    Specializer(model, ctx.skip).run()
