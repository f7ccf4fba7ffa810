"""A pass, hook or check of a user that makes a cycle or calls `sys.exit` is named."""

import sys
from pathlib import Path

import onnx
import pytest

from tests.cli.conftest import Cli, cli, small
from tests.small import model
from tiered import Graph, Model, Pass, PassContext, Sequential, function_pass, module_pass
from tiered.support.errors import PassError, PreconditionError
from tiered.testing import parse

__all__ = ["cli", "small"]


@module_pass(opt_level=None)
def cycles(model: Model, ctx: PassContext) -> None:
    """Make every node read its own output."""
    for node in model.main.nodes:
        model.main.set_input(node, 0, node.output)


@function_pass(opt_level=None)
def cycles_in_graph(graph: Graph, ctx: PassContext) -> None:
    """Make every node read its own output."""
    for node in graph.nodes:
        graph.set_input(node, 0, node.output)


@module_pass(opt_level=None)
def exits(model: Model, ctx: PassContext) -> None:
    """End the process."""
    sys.exit(7)


@pytest.mark.parametrize("pass_", [cycles, cycles_in_graph], ids=str)
def test_a_pass_that_makes_a_cycle_is_named(pass_: Pass) -> None:
    before = model("g (float[2] x) => (float[2] y) { a = Relu(x) y = Neg(a) }")
    text = before.to_proto()
    name = str(pass_)
    with pytest.raises(PassError, match=rf"^{name} failed on .*has a cycle: \S+ <- ") as raised:
        Sequential([pass_, "eliminate_identity", "infer_shapes"]).apply(before)
    assert raised.value.exit_code == 5
    assert before.to_proto() == text


def test_a_pass_that_calls_exit_is_named() -> None:
    before = model("g (float[2] x) => (float[2] y) { y = Relu(x) }")
    with pytest.raises(PassError, match=r"^exits failed at .*: SystemExit: 7"):
        exits.apply(before)


class Stop(BaseException):
    """An exception of a user that is no error."""


@pytest.mark.parametrize("kind", [GeneratorExit, Stop])
def test_a_pass_that_raises_what_is_no_error_is_named(kind: type[BaseException]) -> None:
    @module_pass(opt_level=None)
    def stops(model: Model, ctx: PassContext) -> None:
        """Raise."""
        raise kind("now")

    before = model("g (float[2] x) => (float[2] y) { y = Relu(x) }")
    with pytest.raises(PassError, match=f"^stops failed at .*: {kind.__name__}: now"):
        stops.apply(before)


def test_an_interrupt_in_a_pass_stays_one() -> None:
    @module_pass(opt_level=None)
    def stops(model: Model, ctx: PassContext) -> None:
        """Raise."""
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stops.apply(model("g (float[2] x) => (float[2] y) { y = Relu(x) }"))


def test_a_cycle_in_the_file_is_the_model_s(tmp_path: Path, cli: Cli) -> None:
    proto = parse("g (float[2] x) => (float[2] y) { a = Relu(x) y = Neg(a) }")
    proto.graph.node[0].input[0] = "y"
    path = tmp_path / "m.onnx"
    onnx.save(proto, path)
    ended = cli("optimize", path, "--dry-run")
    assert ended.code == 1
    assert "has a cycle" in ended.err


def test_a_condition_that_calls_exit_is_named() -> None:
    @module_pass(opt_level=None, precondition=lambda model, ctx: sys.exit(3))
    def checked(model: Model, ctx: PassContext) -> None:
        """Do nothing."""

    with pytest.raises(PreconditionError, match="SystemExit: 3"):
        checked.apply(model("g (float[2] x) => (float[2] y) { y = Relu(x) }"))


BAD = '''
import sys
from tiered import module_pass

@module_pass(opt_level=None)
def mine(model, ctx):
    """Of no use."""
    {body}
'''


CYCLE = "[model.main.set_input(n, 0, n.output) for n in model.main.nodes]"


@pytest.mark.parametrize("verify", [(), ("--verify",), ("--verify=structure",)])
@pytest.mark.parametrize("body", ["sys.exit(7)", CYCLE])
def test_the_command_names_the_pass(
    cli: Cli, small: Path, body: str, verify: tuple[str, ...]
) -> None:
    mine, out = small.with_name("mine.py"), small.with_name("out.onnx")
    mine.write_text(BAD.format(body=body))
    run = ("optimize", small, out, "--load", mine, "--passes", "mine,eliminate_identity")
    ended = cli(*run, *verify)
    assert ended.code == 5
    assert "mine failed" in ended.err
    assert not out.exists()


def test_a_file_that_calls_exit_is_named(cli: Cli, small: Path) -> None:
    mine = small.with_name("mine.py")
    mine.write_text("import sys\nsys.exit(7)\n")
    ended = cli("optimize", small, "--dry-run", "--load", mine)
    assert ended.code == 2
    assert "mine.py' cannot be imported: SystemExit: 7" in ended.err
