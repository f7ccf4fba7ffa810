"""`tiered operators`: what is known of operators, and what is not."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.registered import rules_forgotten

EXAMPLE = Path(__file__).parents[3] / "examples" / "own_operator.py"


def test_all_that_is_printed(transcript: Callable[[str], None]) -> None:
    transcript("operators")


def test_it_says_where_each_rule_of_an_operator_is(cli: Cli) -> None:
    said = " ".join(cli("operators", "Gather").out.split())
    assert said.startswith("Gather traits: moves elements, moves first, rearranges")
    assert "range interval of its outputs tiered.graph.intervals.rules.movement_ranges:" in said
    assert "check what it demands of the dims of its operands none: what its schema says" in said
    assert "its form changes in the opsets: 11" in said


def test_json_has_the_same(cli: Cli) -> None:
    found = json.loads(cli("operators", "ai.onnx::GRU", "--json").out)
    assert (found["name"], found["domain"]) == ("GRU", "")
    assert found["aspects"]["gradient"].startswith(
        "tiered.extensions.gradients.rules.recurrent_gradients:"
    )
    assert found["aspects"]["layout"] is None
    assert "layout" in found["missing"]
    assert "onnxruntime_cpu" in found["backends"]


def test_operators_without_an_aspect_are_listed(cli: Cli) -> None:
    without = json.loads(cli("operators", "--missing", "range", "--json").out)
    every = json.loads(cli("operators", "--json").out)
    assert {each["name"] for each in without} < {each["name"] for each in every}
    assert all("range" in each["missing"] and "range" not in each["aspects"] for each in without)
    assert (
        f"{len(without)} operators without a rule of range"
        in cli("operators", "--missing", "range").out
    )
    assert "Add" not in {each["name"] for each in without if not each["domain"]}


def test_a_rule_of_ones_own_is_there_and_a_file_of_rules_needs_no_pass(
    cli: Cli, tmp_path: Path
) -> None:
    own = tmp_path / "my_scale.py"
    shutil.copy(EXAMPLE, own)
    with rules_forgotten():
        ended = cli("operators", "acme::Scale", "--load", own, "--json")
    found = json.loads(ended.out)
    assert found["aspects"]["axes"].startswith("tiered_loaded_my_scale")
    assert found["missing"] == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["Gathr"], "nothing is known of an operator 'Gathr'; did you mean 'Gather'?"),
        (["acme::Other"], "nothing is known of an operator 'acme::Other'"),
        (["--missing", "rang"], "there is no aspect 'rang' of operators; did you mean 'range'?"),
        (["Gather", "--missing", "range"], "takes an operator or --missing, not both"),
    ],
)
def test_what_is_not_there_is_an_error(cli: Cli, arguments: list[str], says: str) -> None:
    ended = cli("operators", *arguments)
    assert ended.code == 2
    assert says in " ".join(ended.err.split())
