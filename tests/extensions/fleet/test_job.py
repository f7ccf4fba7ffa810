"""Commands and jobs: what a command line is, what it depends on, and where results go."""

import os
from pathlib import Path

import pytest

from tiered.extensions.fleet.job import Command, CommandName, Job, jobs_of
from tiered.extensions.fleet.sources import ModelSource


@pytest.mark.parametrize(
    ("name", "options", "writes", "compares", "runs"),
    [
        ("optimize", (), True, False, False),
        ("optimize", ("--verify",), True, True, True),
        ("optimize", ("--verify=final",), True, True, True),
        ("optimize", ("--verify-seed", "1"), True, False, False),
        ("quantize", (), True, False, True),
        ("verify", (), False, True, True),
        ("check", (), False, False, False),
        ("inspect", ("-O3",), False, False, False),
    ],
)
def test_what_a_command_does(
    name: CommandName, options: tuple[str, ...], *, writes: bool, compares: bool, runs: bool
) -> None:
    command = Command(name, options)
    assert (command.writes_model, command.compares, command.runs_models) == (writes, compares, runs)


def test_the_words_have_the_file_of_the_result_if_it_is_a_model() -> None:
    assert Command("optimize", ("-O3",)).words(("in",), "out") == [
        "optimize", "in", "out", "-O3", "--quiet"
    ]  # fmt: skip
    assert Command("verify", ("--seed", "1")).words(("a", "b"), "out") == [
        "verify", "a", "b", "--seed", "1", "--json"
    ]  # fmt: skip


def test_a_command_is_known_by_its_words_and_the_files_that_they_name(tmp_path: Path) -> None:
    profile = tmp_path / "npu.toml"
    profile.write_text("one")
    command = Command("optimize", ("--backend", str(profile)))
    joined = Command("optimize", (f"--backend={profile}",))
    first, other = command.identity(), joined.identity()
    assert len(first) == 32
    assert first != other
    assert command.identity() == first
    assert Command("quantize", command.options).identity() != first
    assert Command("optimize", command.options, against="folder").identity() == first
    profile.write_text("two")
    assert command.identity() != first
    assert joined.identity() != other
    assert Command("optimize", ("-O3",)).identity() != Command("optimize", ("-O2",)).identity()


def test_the_models_are_in_the_order_of_the_command_line() -> None:
    source = ModelSource("a.onnx", "a.onnx", 1)
    assert Job(source, "t").inputs == ("a.onnx",)
    assert Job(source, "t", other="right.onnx").inputs == ("right.onnx", "a.onnx")


SOURCES = [ModelSource("d/b", "b", 5), ModelSource("d/a", "a", 5), ModelSource("d/x/c", "x/c", 9)]


def test_the_largest_model_is_first_and_names_decide_then() -> None:
    jobs = jobs_of(Command("optimize"), SOURCES, "out")
    assert [job.source.path for job in jobs] == ["d/x/c", "d/a", "d/b"]
    assert [job.target for job in jobs] == [os.path.join("out", name) for name in ("x/c", "a", "b")]
    assert {job.other for job in jobs} == {job.reproducer for job in jobs} == {None}


def test_a_report_has_a_suffix_and_verify_another_model() -> None:
    (job, *_) = jobs_of(Command("verify", against="right"), SOURCES, "out", "bundles")
    assert job.target == os.path.join("out", "x/c.json")
    assert job.other == os.path.join("right", "x/c")
    assert job.reproducer == os.path.join("bundles", "x/c")
