"""The command line: `tiered optimize`, `verify`, `bisect`, `passes`, `explain` and more.

Results go to stdout, everything else to stderr. Importing it loads neither onnx, numpy, networkx
nor onnxruntime, so that `tiered --help` answers at once; each command imports what it needs.

Exit codes: 0 done, 1 model or file error, 2 usage, 3 verification failed, 4 what was asked for
cannot be done, or a target or an expectation is not met, 5 a bug in tiered or in a pass, 130
interrupted.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import NoReturn

__all__ = ["main", "process"]

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line on argv (default: the process's own) and return the exit code."""
    return _main(list(sys.argv[1:] if argv is None else argv))[0]


def process() -> NoReturn:
    """Run the command line of the process, and end the process with its exit code.

    Python would free every object of the model and of all modules first, which takes longer than
    to save a small model. Nothing of that is needed if only code of tiered ran: it has closed its
    files.
    """
    gc.disable()  # All that is made is code, or a model that lives until the end.
    exit_code, is_own = _main(sys.argv[1:])
    is_watched = sys.flags.inspect or sys.gettrace() or sys.getprofile()
    if is_own and not is_watched and threading.active_count() == 1:
        atexit._run_exitfuncs()
        _flush_streams()
        os._exit(exit_code)
    sys.exit(exit_code)


def _main(tokens: list[str]) -> tuple[int, bool]:
    """Run a command line; return the exit code, and whether only code of tiered ran."""
    with _sigterm_as_interrupt():
        try:
            from tiered.cli.command_run import run

            return run(tokens)
        except BrokenPipeError:
            # The reader (`| head`) closed the pipe. The command printed after all its work.
            return 0, False
        except KeyboardInterrupt:
            _print_note("tiered: interrupted")
            return INTERRUPTED, False
        finally:
            _flush_streams()


@contextlib.contextmanager
def _sigterm_as_interrupt() -> Iterator[None]:
    """Raise KeyboardInterrupt on SIGTERM, so that temporary files are removed as on Ctrl-C."""
    handler = signal.getsignal(signal.SIGTERM)
    if threading.current_thread() is not threading.main_thread() or handler is signal.SIG_IGN:
        yield
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, handler)


def _print_note(text: str) -> None:
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(f"{text}\n")


def _flush_streams() -> None:
    """Flush; if that fails, redirect the stream to /dev/null: Python flushes again at exit."""
    for stream in (sys.stdout, sys.stderr):
        if stream is None:  # started with it closed
            continue
        try:
            stream.flush()
        except (OSError, ValueError):
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
