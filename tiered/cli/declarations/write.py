"""The commands that write a model: names, options and help."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from tiered.cli.command_flags import ReadOptions, WriteOptions
from tiered.cli.commands.completion import complete_backend
from tiered.cli.commands.convert import ConvertOptions
from tiered.cli.commands.extract import ExtractOptions
from tiered.cli.commands.gradient import GradientOptions
from tiered.cli.commands.merge import MergeOptions
from tiered.cli.commands.partition import PartitionOptions
from tiered.cli.commands.prepare import PreparationOptions
from tiered.cli.commands.quantize import QuantizeOptions
from tiered.cli.commands.split import SplitOptions
from tiered.cli.commands.tune import TuneOptions
from tiered.cli.flags import OptimizeOptions
from tiered.cli.watch import WatchOptions


def optimize(
    model: str,
    out: str | None = None,
    /,
    *more: str,
    options: OptimizeOptions = OptimizeOptions(),
    watch: WatchOptions = WatchOptions(),
) -> int | None:
    """Optimise a model and print what changed.

    Args:
        model: The ONNX file to read; it is never changed.
        out: The file to write. Optional with --dry-run, --json and --out-dir.
        more: More models to read; they need --out-dir, and run as a batch does.
    """
    if more or options.out_dir is not None:
        from tiered.cli.commands.batch import run_into_folder

        sources = [file for file in (model, out, *more) if file is not None]
        return run_into_folder(sources, options, watch)
    from tiered.cli.commands.optimize import run_optimize

    run_optimize(model, out, options, watch)
    return None


def convert(
    model: str,
    out: str | None = None,
    /,
    *,
    options: ConvertOptions = ConvertOptions(),
    write: WriteOptions = WriteOptions(),
) -> None:
    """Convert a model to another opset, IR version or precision, and print what changed.

    Nodes that cannot be converted to an opset are listed, and nothing is written. With --to, nodes
    that stay float are listed with the reason.

    Args:
        model: The ONNX file to read; it is never changed.
        out: The file to write. Optional with --dry-run and --json.
    """
    from tiered.cli.commands.convert import run_convert

    run_convert(model, out, options, write)


def prepare(
    model: str,
    out: str | None = None,
    /,
    *,
    options: PreparationOptions = PreparationOptions(),
    write: WriteOptions = WriteOptions(),
) -> None:
    """Prepare a model for production: dims, opset, precision, target and check, in one run.

    The order of the steps follows from what is asked for. Each is compared with the model before
    it, by default once (--verify=final), on --inputs if there are any. The summary lists them with
    commands that make the same bytes, one after the other, what stays float, and what stays on the
    host. Nothing is written unless all of them succeed.

    Args:
        model: The ONNX file to read; it is never changed.
        out: The file to write. Optional with --dry-run and --json.
    """
    from tiered.cli.commands.prepare import run_prepare

    run_prepare(model, out, options, write)


def extract(
    model: str,
    out: str | None = None,
    /,
    *,
    options: ExtractOptions = ExtractOptions(),
    write: WriteOptions = WriteOptions(),
) -> None:
    """Write the part of a model between tensors, with the weights that it needs.

    Args:
        model: The ONNX file to read; it is never changed.
        out: The file to write. Optional with --dry-run and --json.
    """
    from tiered.cli.commands.extract import run_extract

    run_extract(model, out, options, write)


def split(
    model: str,
    /,
    *,
    options: SplitOptions = SplitOptions(),
) -> None:
    """Write consecutive parts of a model, cut at tensors; `tiered merge` puts them together again.

    A part also returns what later parts read of it, under the same names.

    Args:
        model: The ONNX file to read; it is never changed.
    """
    from tiered.cli.commands.split import run_split

    run_split(model, options)


def gradient(
    model: str,
    out: str | None = None,
    /,
    *,
    options: GradientOptions = GradientOptions(),
    write: WriteOptions = WriteOptions(),
) -> None:
    """Write a model that also returns the gradients of its outputs, in standard operators.

    Args:
        model: The ONNX file to read; it is never changed.
        out: The file to write. Optional with --dry-run and --json.
    """
    from tiered.cli.commands.gradient import run_gradient

    run_gradient(model, out, options, write)


def merge(
    first: Annotated[str, Parameter(name="A")],
    second: Annotated[str, Parameter(name="B")],
    /,
    *more: Annotated[str, Parameter(name="OUT")],
    options: MergeOptions = MergeOptions(),
    write: WriteOptions = WriteOptions(),
) -> None:
    """Write models as one: outputs of A become inputs of B, outputs of both inputs of a third.

    Opsets, functions and names are reconciled; inputs of equal name and type are one input.

    Args:
        first: The ONNX file with the first model.
        second: The ONNX file with the model that reads its outputs.
        more: Further models, and last the file to write: A B C OUT; with -o models only. OUT is
            optional with --dry-run and --json.
    """
    from tiered.cli.commands.merge import run_merge

    run_merge([first, second, *more], options, write)


def partition(
    model: str,
    out: str | None = None,
    /,
    *,
    backend: Annotated[str | None, Parameter(completer=complete_backend)] = None,
    partitions: PartitionOptions = PartitionOptions(),
    options: ReadOptions = ReadOptions(),
) -> None:
    """Print the regions of a model that a target takes, and write them.

    Without --backend, the regions are those of devices and pipeline stages: by --sharding and
    --pipelining, and by the marks in the file.

    Args:
        model: The ONNX file to read.
        out: The file to write: the model with a local function for each region.
        backend: The target: a name that `tiered backends` lists, or a TOML file.
    """
    from tiered.cli.commands.partition import run_partition

    run_partition(model, backend, out, partitions, options)


def quantize(
    model: str,
    out: str | None = None,
    /,
    *,
    options: QuantizeOptions = QuantizeOptions(),
    write: WriteOptions = WriteOptions(),
) -> None:
    """Quantise a model, and print what that costs, layer by layer.

    --inputs are the samples that ranges are measured on; without any, inputs are made. Of four or
    more samples, every fourth is kept to measure the result with.

    Args:
        model: The ONNX file to read; it is never changed.
        out: The file to write. Optional with --dry-run and --json.
    """
    from tiered.cli.commands.quantize import run_quantize

    run_quantize(model, out, options, write)


def tune(
    model: str,
    out: str,
    /,
    *,
    options: TuneOptions = TuneOptions(),
) -> None:
    """Write the form of a model that is fastest on this machine, found by measurement.

    Levels, backends, single passes and candidates are measured; the result is proved to be faster
    than -O3, or is -O3, and never proved slower than the model as it is.

    Args:
        model: The ONNX file to read; it is never changed.
        out: The file to write.
    """
    from tiered.cli.commands.tune import run_tune

    run_tune(model, out, options)


COMMANDS = (
    optimize, prepare, convert, quantize, extract, split, merge, gradient, partition, tune,
)  # fmt: skip
