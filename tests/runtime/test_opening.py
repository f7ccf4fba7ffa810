"""How sessions are opened: levels, threads, providers."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tiered.runtime import Session
from tiered.runtime.opening import (
    CPU,
    RUNTIME_LEVELS,
    Opening,
    check_provider,
    installed_provider,
    nodes_by_provider,
    plain_setting,
    session_options,
    setting_of,
)
from tiered.support.errors import RuntimeFailure, UsageError
from tiered.testing import parse


@pytest.mark.parametrize("level", RUNTIME_LEVELS)
def test_the_level_is_that_of_the_session(level: Any) -> None:
    import onnxruntime

    options = session_options(onnxruntime, Opening(level, 3), 1, "")
    names = {"off": "DISABLE_ALL", "basic": "ENABLE_BASIC", "extended": "ENABLE_EXTENDED"}
    assert options.graph_optimization_level.name == f"ORT_{names.get(level, 'ENABLE_ALL')}"
    assert (options.intra_op_num_threads, options.inter_op_num_threads) == (3, 1)


def test_providers_have_short_names() -> None:
    for name in ("cpu", "CPU", "CPUExecutionProvider", "cpuexecutionprovider"):
        assert installed_provider(name) == CPU


def test_an_unknown_provider_is_an_error_with_the_installed_ones() -> None:
    with pytest.raises(UsageError, match=rf"'cpuu' here; did you mean 'cpu'\? \(.*{CPU}"):
        installed_provider("cpuu")


def test_a_provider_that_onnxruntime_leaves_out_is_an_error() -> None:
    with pytest.raises(RuntimeFailure, match=r"opens 'a\.onnx' without CUDAExecutionProvider"):
        check_provider([CPU], Opening(provider="CUDAExecutionProvider"), "'a.onnx'")
    check_provider([CPU], "reproducible", "'a.onnx'")


class Part:
    """Nodes that a provider takes."""

    def __init__(self, ep_name: str, count: int) -> None:
        self.ep_name = ep_name
        self.get_nodes = lambda: ["node"] * count


def assigned(*parts: Part) -> Any:
    return SimpleNamespace(get_provider_graph_assignment_info=lambda: parts)


def test_a_provider_that_takes_no_node_is_an_error() -> None:
    cuda = Opening(provider="CUDAExecutionProvider")
    session = assigned(Part(CPU, 2), Part(cuda.provider, 3), Part(CPU, 1))
    assert nodes_by_provider(session, cuda, "'a.onnx'") == {CPU: 3, cuda.provider: 3}
    said = r"CUDAExecutionProvider takes no node of 'a\.onnx': CPUExecutionProvider takes 2; choose"
    with pytest.raises(RuntimeFailure, match=said):
        nodes_by_provider(assigned(Part(CPU, 2)), cuda, "'a.onnx'")
    assert nodes_by_provider(assigned(), cuda, "'a.onnx'") == {}
    assert nodes_by_provider(SimpleNamespace(), cuda, "'a.onnx'") == {}
    assert nodes_by_provider(session, "default", "'a.onnx'") == {}


def test_a_prepared_run_is_that_of_the_session() -> None:
    model = parse("(float[2] x) => (bfloat16[2] y, float[2] z) { y = Cast<to=16>(x)  z = Neg(x) }")
    session = Session(model, setting=Opening("all", 1))
    feeds = {"x": np.array([1, -2], np.float32)}
    prepared, ran = session.prepared(feeds)(), session.run(feeds)
    assert isinstance(prepared, dict)
    assert [prepared[name].tolist() for name in ran] == [ran[name].tolist() for name in ran]
    assert prepared["y"].dtype.name == "bfloat16"
    (plain,) = Session(parse("(float[2] x) => (float[2] y) { y = Neg(x) }")).prepared(feeds)()
    assert plain.tolist() == [-1, 2]


def test_a_setting_goes_through_json() -> None:
    for setting in (Opening("basic", 2, profile="here"), "reproducible", "default"):
        plain = json.loads(json.dumps(plain_setting(setting)))
        assert setting_of(plain) == setting


def test_a_session_writes_what_it_is_asked_for(tmp_path: Path) -> None:
    import onnxruntime

    plain = session_options(onnxruntime, Opening(), 1, "")
    assert not plain.enable_profiling
    assert not plain.optimized_model_filepath
    asked = Opening(profile=str(tmp_path), executed=str(tmp_path / "run.onnx"))
    options = session_options(onnxruntime, asked, 1, "")
    assert options.enable_profiling
    assert options.profile_file_prefix == str(tmp_path / "profile")
    assert options.optimized_model_filepath == str(tmp_path / "run.onnx")


def test_a_provider_is_suggested_by_its_short_or_full_name(monkeypatch: pytest.MonkeyPatch) -> None:
    import onnxruntime

    names = ["CUDAExecutionProvider", "CPUExecutionProvider"]
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: names)
    assert installed_provider("cuda") == installed_provider("CUDAExecutionProvider") == names[0]
    for name, hint in (
        ("CUDDA", "; did you mean 'cuda'?"),
        ("CPUExecutionProvidre", "; did you mean 'CPUExecutionProvider'?"),
        ("xyz", ""),
    ):
        with pytest.raises(UsageError) as caught:
            installed_provider(name)
        assert str(caught.value) == (
            f"onnxruntime has no provider {name!r} here{hint} (installed: {', '.join(names)})"
        )
