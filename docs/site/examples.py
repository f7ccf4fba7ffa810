"""The example of each pass: a golden one, or the first rewrite that its own tests assert."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple
from unittest import mock

import onnx
import pytest

import tiered.testing
from tiered.graph.io.save import Storage
from tiered.passes import Pass, PassInfo

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "test_golden.py"
"""Has examples of passes whose own tests begin with a special case, or are of another form."""
GOLDEN_FILES = ROOT / "tests" / "test_golden_files.py"
"""Has examples whose change is not in the nodes, or is measured."""
RUNTIME = {"runtime", "because", "config"}
"""Arguments of the assertions that are no options of the pass."""
_ASSERTIONS = ("assert_rewrites", "assert_unchanged")


class Example(NamedTuple):
    """A model that a pass rewrites, and the test that asserts it.

    Attributes:
        before: the model.
        backend: the target that the pass needs, if any.
        options: of the pass.
        test: the function of the test, and `file` its file, relative to the root.
        storage: of the weights of the model.
        beside: models in other files; the options name them.
    """

    before: onnx.ModelProto
    backend: Any
    options: Mapping[str, Any]
    test: str
    file: str
    storage: Storage | None = None
    beside: Mapping[str, onnx.ModelProto] = {}


_Rewrite = tuple[onnx.ModelProto, Any, Mapping[str, Any]]
"""A model that is rewritten, the backend and the options of the pass."""


class _Found(BaseException):
    """Ends a test at the first rewrite that it asserts."""

    def __init__(self, before: onnx.ModelProto, backend: Any, options: Mapping[str, Any]) -> None:
        super().__init__()
        self.before, self.backend, self.options = before, backend, options


def own_tests(info: PassInfo) -> Path:
    """Return the file of the tests of a pass."""
    source = Path(info.source).resolve()
    folder = source.relative_to(ROOT / "tiered").parent
    return ROOT / "tests" / folder / f"test_{source.stem}.py"


def example_of(info: PassInfo) -> Example | None:
    """Return the example of a pass; None if no test asserts a rewrite of it."""
    with _recording(info.name, _end):
        return _golden(info.name) or _file(info.name) or _first(own_tests(info))


def rewrites_of(info: PassInfo, *, declined: bool = False) -> list[Example]:
    """Return what the tests of a pass assert that it rewrites, each with its first parameters.

    Args:
        info: the pass.
        declined: return what they assert that it leaves alone instead.
    """
    path = own_tests(info)
    if not path.is_file():
        return []
    made: list[Example] = []
    file, rewrites = path.relative_to(ROOT).as_posix(), list[_Rewrite]()
    asserted = _ASSERTIONS[declined]
    with _recording(info.name, lambda *rewrite: rewrites.append(rewrite), asserted):
        for test, call in _calls(_module(path), asserted):
            with suppress(pytest.fail.Exception):  # what it expects to raise is not called
                call()
            made += [Example(*rewrite, test=test, file=file) for rewrite in rewrites]
            rewrites.clear()
    return made


def _end(before: onnx.ModelProto, backend: Any, options: Mapping[str, Any]) -> None:
    raise _Found(before, backend, options)


def _golden(name: str) -> Example | None:
    tests = _module(GOLDEN)
    if name not in tests.EXAMPLES:
        return None
    return _recorded(GOLDEN, "test_a_pass_rewrites", lambda: tests.test_a_pass_rewrites(name))


def _file(name: str) -> Example | None:
    golden = _module(GOLDEN_FILES).GOLDEN.get(name)
    if golden is None:
        return None
    found: Example = golden.example(
        "test_a_pass_changes_these_lines_of_a_file", GOLDEN_FILES.relative_to(ROOT).as_posix()
    )
    return found


def _first(path: Path) -> Example | None:
    """Return the first rewrite that a file of tests asserts of a pass."""
    if not path.is_file():
        return None
    tests = _module(path)
    for test, call in _calls(tests):
        found = _recorded(path, test, call)
        if found is not None:
            return found
    return None


def _recorded(path: Path, test: str, call: Callable[[], object]) -> Example | None:
    try:
        call()
    except _Found as found:
        file = path.relative_to(ROOT).as_posix()
        return Example(found.before, found.backend, found.options, test, file)
    return None


def _calls(
    tests: ModuleType, asserted: str = _ASSERTIONS[0]
) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the tests that call an assertion, with the first of their parameters."""
    for name, test in vars(tests).items():
        if not (name.startswith("test_") and isinstance(test, FunctionType)):
            continue
        arguments = _first_parameters(test)
        wanted = set(test.__code__.co_varnames[: test.__code__.co_argcount])
        if set(arguments) == wanted and _reaches(test, tests, asserted, set()):
            yield name, partial(test, **arguments)


def _first_parameters(test: FunctionType) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    for mark in getattr(test, "pytestmark", []):
        if mark.name != "parametrize":
            continue
        names, rows = mark.args[:2]
        names = [name.strip() for name in names.split(",")] if isinstance(names, str) else names
        row = next(iter(rows))
        row = getattr(row, "values", row) if type(row).__name__ == "ParameterSet" else row
        arguments.update(zip(names, row if len(names) > 1 else [_only(row)], strict=True))
    return arguments


def _only(row: Any) -> Any:
    return row[0] if isinstance(row, tuple) and len(row) == 1 else row


def _reaches(function: FunctionType, tests: ModuleType, asserted: str, seen: set[str]) -> bool:
    """Return whether a function calls an assertion, itself or by helpers of its file."""
    for name in _names(function.__code__):
        if name == asserted:
            return True
        helper = vars(tests).get(name)
        if isinstance(helper, FunctionType) and name not in seen:
            seen.add(name)
            if _reaches(helper, tests, asserted, seen):
                return True
    return False


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)


@contextmanager
def _recording(
    name: str,
    record: Callable[[onnx.ModelProto, Any, Mapping[str, Any]], None],
    asserted: str = _ASSERTIONS[0],
) -> Iterator[None]:
    """Replace the assertions of `tiered.testing`: nothing runs, models of the pass are recorded.

    Args:
        name: the pass.
        record: called with the model, the backend and the options of each assertion.
        asserted: which assertion.
    """

    def recorded(
        pass_: str | Pass,
        before: str | onnx.ModelProto,
        _after: str | onnx.ModelProto = "",
        *,
        opset: int = 21,
        backend: Any = None,
        **options: Any,
    ) -> None:
        if (pass_ if isinstance(pass_, str) else pass_.name) != name:
            return
        own = {} if isinstance(pass_, str) else dict(pass_.options)
        own |= {key: value for key, value in options.items() if key not in RUNTIME}
        record(tiered.testing.parse(before, opset=opset), backend, own)

    def ignored(*_: Any, **__: Any) -> None:
        """Do nothing."""

    replaced = dict.fromkeys(_ASSERTIONS, ignored) | {asserted: recorded}
    with mock.patch.multiple(tiered.testing, **replaced):
        yield


def _module(path: Path) -> ModuleType:
    """Return a file of tests as a module of its own, with the present `tiered.testing`."""
    spec = importlib.util.spec_from_file_location(f"examples_of.{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
