"""The commands that print properties of a model: names, options and help."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from tiered.cli.command_flags import CheckOptions, DoctorOptions, InspectOptions, ReadOptions
from tiered.cli.commands.completion import complete_pass
from tiered.cli.commands.sensitivity import SensitivityOptions
from tiered.cli.flags import BackendName, Names


def inspect(
    model: str,
    /,
    *,
    target: InspectOptions = InspectOptions(),
    options: ReadOptions = ReadOptions(),
) -> None:
    """Print the contents of a model, without changing it.

    Args:
        model: The ONNX file to read.
    """
    from tiered.cli.commands.inspect import run_inspect

    run_inspect(model, target, options)


def explain(
    model: str,
    pass_: Annotated[str, Parameter(name="PASS", completer=complete_pass)],
    /,
    *,
    node: str | None = None,
    after: str = "",
    load: Names = (),
    opt_level: Annotated[int, Parameter(name=["--opt-level", "-O"])] = 2,
    backend: BackendName = None,
    options: ReadOptions = ReadOptions(),
) -> None:
    """Explain node by node why a pass fires or does not fire, without changing the model.

    Args:
        model: The ONNX file to read.
        pass_: A pass, optionally with options and scope: 'fold_constant{max_growth=0}'.
        node: Only this node, with the matched part before the first failed condition.
        after: Passes to run first: 'default', 'a,b,fix(c,d)'.
        load: As for `tiered optimize`: Python files or modules with passes of your own.
        opt_level: The level, as for `tiered optimize`.
        backend: The target, as for optimize: a name or a TOML file; portable by default.
    """
    from tiered.cli.commands.explain import run_explain
    from tiered.cli.load_passes import load_passes

    load_passes(load)
    run_explain(
        model,
        pass_,
        node=node,
        after=after,
        opt_level=opt_level,
        backend=backend,
        options=options,
    )


def check(
    model: str,
    /,
    *,
    target: CheckOptions,
    options: ReadOptions = ReadOptions(),
) -> None:
    """Print the nodes that a target supports, and why it does not support the others.

    Args:
        model: The ONNX file to read.
    """
    from tiered.cli.commands.check import run_check

    run_check(model, target, options)


def doctor(
    model: str,
    /,
    *,
    options: DoctorOptions = DoctorOptions(),
) -> None:
    """Print the shortest list of commands that makes a model legal on a target, smaller, faster.

    Each is tried in memory: dims, versions, quantisation, integers, precision, cutting. The table
    says what each gains. Exit code 4 if nothing makes any part of the model legal.

    Args:
        model: The ONNX file to read; nothing is written.
    """
    from tiered.cli.commands.doctor import run_doctor

    run_doctor(model, options)


def layout(
    model: str,
    /,
    *,
    after: str = "",
    backend: BackendName = None,
    html: Annotated[str | None, Parameter(show_default=False)] = None,
    options: ReadOptions = ReadOptions(),
) -> None:
    """Print the cost of Transposes, which ones can be removed, and what blocks the others.

    A dynamic dim counts as 16.

    Args:
        model: The ONNX file to read; it is not changed.
        after: Passes to run first: 'default', 'a,b,fix(c,d)'.
        backend: The target; `--after default` runs its pipeline.
        html: Write a page that lists the Transposes, their costs, and the nodes that block them.
    """
    from tiered.cli.commands.layout import run_layout

    run_layout(model, after=after, backend=backend, html=html, options=options)


def memory(
    model: str,
    /,
    *,
    default_dim: int = 16,
    in_place: bool = True,
    svg: str | None = None,
    html: Annotated[str | None, Parameter(show_default=False)] = None,
    options: ReadOptions = ReadOptions(),
) -> None:
    """Print how many bytes of tensors are alive at the peak, where it is, and what is alive there.

    Constants are counted apart. Inputs are alive all the time.

    Args:
        model: The ONNX file to read; it is not changed.
        default_dim: The size of a dynamic dim without --dim.
        in_place: Elementwise operators write over operands, and reshapes take no memory.
        svg: A file for the curve.
        html: Write a page with the curve and all tensors at the peak.
    """
    from tiered.cli.commands.memory import run_memory

    run_memory(
        model, default_dim=default_dim, in_place=in_place, svg=svg, html=html, options=options
    )


def sensitivity(
    model: str,
    /,
    *,
    options: SensitivityOptions = SensitivityOptions(),
) -> None:
    """Print the weights that matter most for the outputs, by gradients on some inputs.

    Args:
        model: The ONNX file to read; it is not changed.
    """
    from tiered.cli.commands.sensitivity import run_sensitivity

    run_sensitivity(model, options)


def view(
    model: str,
    after: str | None = None,
    /,
    *,
    browser: bool = True,
) -> None:
    """Open a model in Netron (the extra tiered[view]), or what changed between two on one page.

    Args:
        model: The ONNX file to read.
        after: A second one: the page of `tiered diff` shows what differs, side by side.
        browser: Open the browser; else only print the address.
    """
    from tiered.cli.commands.view import run_view

    run_view(model, after, browse=browser)


COMMANDS = (inspect, explain, check, doctor, layout, memory, sensitivity, view)
