"""The model that a command writes: its file is checked before any work, and saved with a mark."""

from __future__ import annotations

import os
from collections.abc import Collection
from functools import cached_property
from typing import TYPE_CHECKING

from tiered.cli.files import check_data_files, check_input, check_output, choose_output
from tiered.cli.shared_options import LEAST_EXTERNAL, OptimizeOptions, size_option
from tiered.support.errors import UsageError
from tiered.support.records import Record

if TYPE_CHECKING:
    from tiered.cli.source_mark import SourceMark
    from tiered.graph import Model
    from tiered.graph.io.save import PlacedWeights, Storage


class Goal(Record):
    """What a command writes.

    Attributes:
        path: the file that was named; None for none.
        sources: the files that are read.
        options: how to write, and whether at all.
    """

    path: str | None
    sources: tuple[str, ...]
    options: OptimizeOptions

    @staticmethod
    def of(
        source: str, out: str | None, options: OptimizeOptions, *more: str, may_lack: bool = False
    ) -> Goal:
        """Return the goal of a command line, and check its options and files.

        Args:
            source: the file to read.
            out: the file to write, as OUT; None for that of -o.
            options: how to write.
            more: other files to read, if the result is one of several models.
            may_lack: whether nothing may be written.

        Raises:
            UsageError: options that do not go together, no file to write, or one that must not be
                replaced.
            ModelError: a file cannot be read, or nothing can be written there.
        """
        may_lack |= options.dry_run or options.json
        path = choose_output(out, options.output, may_lack=may_lack)
        check_writing(options)
        for read in (source, *more):
            check_input(read)
        if path is not None:
            check_target(source, path, options, *more)
        return Goal(path, (source, *more), options)

    @property
    def written(self) -> str | None:
        """The file that is written; None for a dry run."""
        return None if self.options.dry_run else self.path

    @cached_property
    def storage(self) -> Storage:
        """Where the weights are written."""
        from tiered.graph.io.save import Storage

        options, least = self.options, None
        if options.external_data is not None:
            least = size_option("--external-data", options.external_data)
        elif options.safetensors:
            least = size_option("--external-data", LEAST_EXTERNAL)
        return Storage(least, options.single_file, options.share_weights, options.safetensors)

    @property
    def is_stored_alike(self) -> bool:
        """Return whether weights are stored as those of the model are."""
        from tiered.graph.io.save import Storage

        return not self.options.annotate and self.storage == Storage()

    def mark(self, *models: Model) -> SourceMark | None:
        """Return the mark for the result of models, after checking that it can be written.

        Returns:
            None if no file was named.

        Raises:
            UsageError: writing would overwrite weights of a model that is read.
            ModelError: a file of weights cannot be read.
        """
        if self.path is None:
            return None
        from tiered.cli.source_mark import joined_mark, source_mark
        from tiered.graph.io.save import check_storage

        for model in models:
            check_data_files(model, self.path)
            check_storage(model, self.storage)
        pairs = zip(models, self.sources, strict=True)
        marks = [source_mark(model, file, self.options.result_of) for model, file in pairs]
        return marks[0] if len(marks) == 1 else joined_mark(*marks)

    def save(
        self, model: Model, mark: SourceMark | None, asked: Collection[str]
    ) -> PlacedWeights | None:
        """Write a result that has its mark; return where its weights are, or None for a dry run.

        Args:
            model: the result.
            mark: that of its model.
            asked: the properties that it was asked to have: `prepared.decided_by` a run.

        Raises:
            UsageError: the file has a property that the result has not.
            ModelError: the file cannot be written.
        """
        written = self.written
        if written is None or mark is None:
            return None
        from tiered.graph.io.save import save_model

        if not self.options.force and os.path.exists(written):
            from tiered.cli.source_mark import check_kept

            check_kept(written, mark, model, asked)
        return save_model(model, written, annotate=self.options.annotate, storage=self.storage)


def check_writing(options: OptimizeOptions) -> None:
    """Check how a command writes and prints.

    Raises:
        UsageError: options that contradict each other, or an invalid size.
    """
    if options.quiet and options.verbose:
        raise UsageError("-q and -v are opposites; use one")
    if options.external_data is not None and options.single_file:
        raise UsageError("--external-data and --single-file are opposites; use one")
    if options.safetensors and options.single_file:
        raise UsageError("--safetensors and --single-file are opposites; use one")
    if options.share_weights and options.single_file:
        raise UsageError("--share-weights and --single-file are opposites; use one")
    if options.external_data is not None:
        size_option("--external-data", options.external_data)


def check_target(source: str, target: str, options: OptimizeOptions, *more: str) -> None:
    """Check the file to write, before any work is done.

    Args:
        source: the file to read.
        target: the file to write.
        options: the options that say whether it may be replaced.
        more: other files to read, if the result is one of several models.

    Raises:
        UsageError: it is a model that must not be replaced.
        ModelError: nothing can be written there.
    """
    for read in (source, *more, *([] if options.result_of is None else [options.result_of])):
        check_input(read)
        check_output(read, target)
    if not options.force and not options.dry_run and os.path.exists(target):
        from tiered.cli.source_mark import check_replaced

        hint = ", or --out-dir DIR if both are inputs"
        check_replaced(options.result_of or source, *more, target=target, hint=hint)
