"""What the options of `tiered optimize` ask for, read once: nothing else parses them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tiered.cli.load_passes import load_passes
from tiered.cli.pass_names import Required, level_set, split_names, split_required, strip_pass
from tiered.cli.shared_options import OptimizeOptions, size_option
from tiered.cli.watch import WatchOptions, check_watch, config_of
from tiered.cli.writing import check_writing
from tiered.graph.shape_text import Dims, Shapes, parse_dims, parse_shapes
from tiered.support.errors import UsageError
from tiered.support.records import Record

if TYPE_CHECKING:
    from tiered.context import PassContext
    from tiered.passes import Pass
    from tiered.pipeline.expectations import Expectation


class PreparedRun(Record):
    """The options of a run, as `optimize_model` takes them.

    Attributes:
        options, watch: as they were typed.
        passes: a pipeline instead of the default one, with the pass of --strip.
        settings: of the context.
        edits: of the pipeline: those of --edit, and the options of --require.
        shapes, dims: of inputs, by name.
        tested: the shapes of generated inputs.
        expectations: of the result.
    """

    options: OptimizeOptions
    watch: WatchOptions
    passes: str | Sequence[Pass | str] | None
    settings: dict[str, Any]
    edits: tuple[str, ...]
    shapes: Shapes
    dims: Dims
    tested: Shapes
    expectations: Sequence[Expectation]

    @staticmethod
    def of(
        options: OptimizeOptions, watch: WatchOptions | None = None, passes: Sequence[Pass] = ()
    ) -> PreparedRun:
        """Read options, before any file.

        Args:
            options, watch: as they were typed.
            passes: what a command other than `optimize` runs.

        Raises:
            UsageError: options that do not go together, or a wrong value of one.
        """
        from tiered.pipeline.expectations import parse_expectations

        watch = WatchOptions() if watch is None else watch
        load_passes(options.load)
        expectations = parse_expectations(options.expect)
        check_watch(watch)
        if options.certify is not None:
            from tiered.certify.certify_instrument import certify_of

            certify_of(options.certify)
        check_writing(options)
        if options.passes is not None and not options.passes.strip():
            raise UsageError("--passes lists no pass; leave it out for the default pipeline")
        config = config_of(watch.set)
        if options.max_memory is not None:
            size_option("--max-memory", options.max_memory)
            config["memory.max"] = options.max_memory
        listed: str | Sequence[Pass | str] | None = passes or options.passes
        required = split_required(options.require)
        if options.strip:
            strip = strip_pass(options.strip)
            if listed is None:
                edits = (*required.edits, f"set {strip}")
                required = Required((*required.names, strip.name), edits)
            else:
                listed = [*((listed,) if isinstance(listed, str) else listed), strip]
        settings = {
            "opt_level": level_set(options.opt_level),
            "required": required.names,
            "disabled": split_names(options.disable, "--disable"),
            "backend": options.backend,
            "strict": options.strict or None,
            "config": config,
            "rewrite_limit": watch.limit,
        }
        return PreparedRun(
            options,
            watch,
            listed,
            settings,
            (*options.edit, *required.edits),
            parse_shapes(options.input_shape),
            parse_dims(options.dim),
            parse_shapes(options.test_input_shape, "--test-input-shape"),
            expectations,
        )

    def context(self) -> PassContext:
        """Return the context of the run, which requires the passes that set shapes.

        Raises:
            UsageError: a wrong name in an option.
        """
        from tiered.context import PassContext
        from tiered.pipeline.optimize import pipeline_of, settings_with_shapes

        if self.passes is not None:
            pipeline_of(self.passes)  # The context may name its groups.
        return PassContext(**settings_with_shapes(self.settings, self.shapes, self.dims))


def decided_by(prepared: PreparedRun) -> set[str]:
    """Return the properties of models that the listed and required passes of a run decide."""
    from tiered.cli.source_mark import OPSET, PRECISION
    from tiered.passes.interface.registry import registry
    from tiered.passes.policy.selectors import Site, entries_of
    from tiered.pipeline.optimize import pipeline_of
    from tiered.support.numerics import Numerics

    infos = []
    if prepared.passes is not None:  # its groups may be required
        infos += [leaf.info for leaf in pipeline_of(prepared.passes).leaves()]
    for entry in entries_of(prepared.settings["required"], "--require", Site("", 0)):
        if not entry.group:
            infos += [registry.named(name).info for name in entry.names if name in registry]
    decided = {OPSET for info in infos if info.name == "convert_opset"}
    return decided | {PRECISION for info in infos if info.numerics is Numerics.LOSSY}
