"""A model  =>  the same model, with an overview of it on stderr"""

import sys

from tiered import Model, PassContext, module_pass
from tiered.pipeline.instruments.onnx_text import model_text
from tiered.pipeline.instruments.overview import overview_text


@module_pass(opt_level=None, analysis=True)
def model_overview(model: Model, ctx: PassContext, *, text: bool = False, header: str = "") -> None:
    """Print the interface, the operators and the size of the model at this place: TVM's PrintIR.

    Args:
        text: print all nodes as `onnx.printer` writes them, without large weights.
        header: printed before it.
    """
    shown = model_text(model) if text else overview_text(model)
    if sys.stderr is not None:
        sys.stderr.write(f"{header or f'# {model.label}'}\n{shown}\n")
