"""Contexts, pipelines and infos with TVM's arguments."""

from typing import Any

import pytest

import tiered
from tests.recorded import assert_values
from tiered.compat.tvm import contexts
from tiered.compat.tvm.contexts import PassContext, PassInfo, Sequential, build_config
from tiered.support.config_options import config_options
from tiered.support.errors import UsageError


def test_arguments_of_a_context_have_tvms_names_and_order() -> None:
    context = PassContext(1, ["fold_constant"], ["fuse_pad_into_conv"])
    assert isinstance(context, tiered.PassContext)
    assert context.opt_level == 1
    assert {entry.text for entry in context.required} == {"fold_constant"}
    assert {entry.text for entry in context.disabled} == {"fuse_pad_into_conv"}


def test_the_options_are_listed_with_their_types() -> None:
    listed = PassContext.list_configs()
    assert listed.keys() == config_options().keys()
    assert all(entry["type"] for entry in listed.values())


def test_build_config_warns_and_has_level_2() -> None:
    with pytest.warns(DeprecationWarning, match="use PassContext") as warned:
        assert build_config().opt_level == 2
    assert warned[0].filename == __file__
    with pytest.warns(DeprecationWarning, match="build_config is deprecated"):
        assert build_config(0, disabled_pass=["fold_constant"]).opt_level == 0


def test_a_sequential_keeps_its_level_and_a_name_of_its_own() -> None:
    assert Sequential(["fold_constant"]).info.opt_level == 0
    named = Sequential(["fold_constant"], opt_level=2, name="mine")
    assert (named.info.opt_level, named.info.name) == (2, "mine")
    with pytest.raises(UsageError, match="requires nothing"):
        Sequential(["fold_constant"], required=["infer_shapes"])


def test_an_info_takes_its_level_first() -> None:
    info = PassInfo(1, "mine", ["infer_shapes"])
    assert isinstance(info, tiered.PassInfo)
    assert (info.name, info.opt_level, info.required) == ("mine", 1, ("infer_shapes",))


@pytest.mark.parametrize("given", [("mine", 1), (True, "mine"), (1, "mine", "infer_shapes")])
def test_another_order_or_a_text_for_a_list_is_an_error(given: tuple[object, ...]) -> None:
    with pytest.raises(UsageError, match="takes a level, a name and a list of names"):
        PassInfo(*given)  # type: ignore[arg-type]  # what a caller gives in the wrong order


def test_contexts_and_infos_are_recorded() -> None:
    def context(*args: Any, **more: Any) -> object:
        made = contexts.PassContext(*args, **more)
        return made.opt_level, [
            sorted(each.text for each in given) for given in (made.required, made.disabled)
        ]

    def info(*args: Any, **more: Any) -> object:
        made = contexts.PassInfo(*args, **more)
        return made.name, made.opt_level, made.required

    names = {
        "context": context,
        "info": info,
        "sequential": lambda *args, **more: str(contexts.Sequential(*args, **more)),
        "level": lambda *args, **more: contexts.Sequential(*args, **more).info.opt_level,
        "configs": contexts.PassContext.list_configs,
    }
    assert_values(__file__, names)
