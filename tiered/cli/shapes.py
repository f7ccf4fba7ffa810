"""The shapes that --input-shape and --dim give to the inputs of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tiered.cli.files import load_model
from tiered.cli.output.terminal import Progress, printable
from tiered.graph.shape_text import Shapes, parse_dims, parse_shapes

if TYPE_CHECKING:
    from tiered.cli.shared_options import ReadOptions
    from tiered.graph import Model


def load_shaped(file: str, options: ReadOptions, progress: Progress) -> Model:
    """Return the model of a file with the shapes of --input-shape and --dim.

    Raises:
        ModelError: the file cannot be read.
        UsageError: an option is wrong, or there is no such input or dim.
        ShapeError: the model only works with other sizes.
    """
    shapes, dims = parse_shapes(options.input_shape), parse_dims(options.dim)
    progress.say(f"reading {printable(file)}")
    model = load_model(file)
    if shapes or dims:
        model.set_input_shapes(shapes, dims)
    return model


def shapes_of_inputs(model: Model, input_shape: Sequence[str], dim: Sequence[str]) -> Shapes:
    """Return the shapes of the inputs of a model according to --input-shape and --dim.

    Raises:
        UsageError: there is no such dim.
    """
    from tiered.graph.shape_inference.set_input_shapes import with_dims

    found = with_dims(model, parse_shapes(input_shape), parse_dims(dim))
    return {name: [*dims] for name, dims in found.items()}
