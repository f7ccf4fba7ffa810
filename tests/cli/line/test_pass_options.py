"""Options of commands that are those of passes."""

from typing import Annotated

import pytest

from tiered import get_pass
from tiered.cli.line.declaration import DeclaredCommand, Flags
from tiered.cli.line.pass_options import OfPass, PassOptions
from tiered.cli.line.reader import WrongLine, read
from tiered.support.errors import OptionError

Options = Annotated[
    PassOptions,
    OfPass(
        "quantize",
        without=("inputs",),
        when="With --this",
        skip_op_types=Flags("--keep-ops", splits=True),
        reduce_range=Flags(off="--no-reduce-range"),
    ),
]


def command(*, options: Options) -> None:
    """Do nothing."""


KNOWN = DeclaredCommand("command", command)


def options_of(*words: str) -> PassOptions:
    line = read(KNOWN, words)
    group = KNOWN.groups["options"]
    found: PassOptions = group(**{each.name: line.values[each.key] for each in KNOWN.options})
    return found


def test_names_types_defaults_and_help_are_those_of_the_pass() -> None:
    declared = {each.name: each for each in KNOWN.options}
    options = {option.name: option for option in get_pass("quantize").info.options}
    assert declared.keys() == options.keys() - {"inputs"}
    for name, each in declared.items():
        assert each.option.type == options[name].type
        assert each.option.default == options[name].default
        assert each.option.doc.startswith("With --this: ")
    assert declared["skip_op_types"].names == ("--keep-ops",)
    assert declared["skip_nodes"].option.doc.endswith("Repeatable.")
    assert declared["method"].names == ("--method",)


def test_a_line_makes_the_pass_with_the_options_that_were_typed() -> None:
    given = ("--keep-ops", "Conv,Gemm", "--no-reduce-range", "--method=entropy", "--seed", "0")
    options = options_of(*given)
    assert options["skip_op_types"] == ("Conv", "Gemm")
    assert options.given.keys() == {"skip_op_types", "reduce_range", "method"}
    same = {"skip_op_types": ["Conv", "Gemm"], "reduce_range": False, "method": "entropy"}
    assert options.pass_() == get_pass("quantize", **same)
    assert options.pass_(samples=2) == get_pass("quantize", **same, samples=2)
    assert options_of(*options.words()).values == options.values


def test_another_pass_gets_the_options_that_it_has() -> None:
    options = options_of("--keep-ops", "Conv", "--method", "entropy")
    assert options.pass_("weights_to_int8") == get_pass("weights_to_int8", skip_op_types=["Conv"])
    with pytest.raises(OptionError, match="has no option 'wurst'"):
        options.pass_("weights_to_int8", wurst=1)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--samples", "x"), 'Invalid value for --samples: unable to convert "x" into int'),
        (("--inputs", "x"), "Unknown option: --inputs"),
        (("--order=x",), 'Invalid value "x" for --order. Choose from: "auto", "error", '),
    ],
)
def test_values_are_checked_as_those_of_any_option(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(WrongLine) as caught:
        options_of(*words)
    assert str(caught.value).startswith(message)


def test_an_option_that_the_pass_has_not_is_a_mistake_of_the_command() -> None:
    with pytest.raises(AssertionError, match="the pass has them"):
        _ = OfPass("quantize", only=("wurst",)).declared
