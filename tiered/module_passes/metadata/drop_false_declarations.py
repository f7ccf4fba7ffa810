"""A declared type that contradicts the inferred one  =>  no declaration"""

from tiered import Model, PassContext, module_pass


@module_pass(opt_level=0, required=("infer_shapes",))
def drop_false_declarations(model: Model, ctx: PassContext) -> None:
    """Drop inner declarations with another dtype, rank or size than what is computed.

    Runtimes ignore them, but onnx.checker may see a contradiction where it saw none, once a
    value before them is known. These are the value_info of all graphs, and the sizes of outputs of
    bodies. The interface stays; under `strict` all stay, and `final_check` reports them.
    """
    if ctx.strict:
        return
    dropped = model.drop_false_declarations()
    if dropped:
        more = f", and {len(dropped) - 1} more" if len(dropped) > 1 else ""
        ctx.remark(f"dropped the declaration of {dropped[0]}{more}")
