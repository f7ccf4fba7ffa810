"""Shell completion: `tiered __complete WORD...` prints what the last word may become.

A line has a candidate and, after a tab, what it is. The scripts of the shells only ask for these
lines, so that they include commands and passes that were installed later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal

from tiered.cli.commands import command_in, command_names, summary_of
from tiered.cli.line.declaration import DeclaredCommand, DeclaredParameter
from tiered.cli.line.reader import is_flag

ASKED: Final = "__complete"
Shell = Literal["bash", "zsh", "fish", "powershell"]
Candidates = Iterable[tuple[str, str]]

SCRIPTS: Final[dict[Shell, str]] = {
    "bash": r"""
_tiered() {
    local IFS=$'\n' current="${COMP_WORDS[COMP_CWORD]}"
    [[ "$current" == "=" ]] && current=""
    local words=("${COMP_WORDS[@]:1:COMP_CWORD}")
    local found=$(tiered __complete "${words[@]}" 2>/dev/null | cut -f 1)
    COMPREPLY=($(compgen -W "$found" -- "$current"))
    [[ ${#COMPREPLY[@]} -eq 1 ]] && printf -v COMPREPLY[0] '%q' "${COMPREPLY[0]}"
}
complete -o default -o bashdefault -F _tiered tiered
""",
    "zsh": r"""
#compdef tiered
_tiered() {
    local -a values shown
    local line
    for line in "${(@f)$(tiered __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        [[ -n "$line" ]] || continue
        values+=("${line%%$'\t'*}")
        shown+=("${line/$'\t'/  -- }")
    done
    if (( ${#values} )); then compadd -l -d shown -a values; else _files; fi
}
if [[ "$funcstack[1]" == _tiered ]]; then _tiered "$@"; else compdef _tiered tiered; fi
""",
    "fish": r"""
complete -c tiered -a '(tiered __complete (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
""",
    "powershell": r"""
Register-ArgumentCompleter -Native -CommandName tiered -ScriptBlock {
    param($word, $tree, $position)
    $words = @($tree.CommandElements | Select-Object -Skip 1 | ForEach-Object { "$_" })
    if ($word -eq '') { $words += '""' }
    tiered __complete @words 2>$null | ForEach-Object {
        $value, $said = $_ -split "`t", 2
        if ($value -like "$word*") {
            $said = if ($said) { $said } else { $value }
            $kind = 'System.Management.Automation.CompletionResult'
            New-Object $kind $value, $value, 'ParameterValue', $said
        }
    }
}
""",
}
"""The scripts; bash splits words at `=`, the others do not."""


def candidates(words: Sequence[str]) -> Iterator[str]:
    """Yield the lines for the last of the words after `tiered`."""
    *before, word = _joined(words) or [""]
    word = "" if word == '""' else word
    name, equals, typed = word.partition("=")
    found = command_in(before)
    if found is None:
        prefix, rows = "", [(each, summary_of(each)) for each in command_names()]
    elif equals and (declared := _by_name(found[0]).get(name)):
        prefix, rows = "" if "=" in words else f"{name}=", [*_values(declared, typed)]
    else:
        prefix, rows = "", [*_of_command(*found, word)]
    for value, said in rows:
        yield f"{prefix}{value}\t{said}" if said else f"{prefix}{value}"


def _joined(words: Sequence[str]) -> list[str]:
    """Return words as they were typed: bash splits them at `=`."""
    made: list[str] = []
    for word in words:
        if made and (word == "=" or made[-1].endswith("=")) and made[-1].startswith("--"):
            made[-1] += word
        else:
            made.append(word)
    return made


def _by_name(command: DeclaredCommand) -> dict[str, DeclaredParameter]:
    return {name: each for each in command.options for name in each.names}


def _of_command(
    command: DeclaredCommand, words: Sequence[str], word: str
) -> Iterator[tuple[str, str]]:
    """Yield what may follow words after a command."""
    known = _by_name(command)
    if word.startswith("-") and "--" not in words:
        for each in command.described()[1]:
            yield from ((name, each.option.doc) for name in each.names)
            yield from [(each.off, f"not {each.names[0]}")] if each.off else []
        return
    takes = {n for n, each in known.items() if not each.is_switch and not each.flags.alone}
    last, place = "", 0
    for at, typed in enumerate(words):
        if typed == "--":
            last, place = "", place + len(words) - at - 1
            break
        is_value = last in takes or _is_optional_value(known.get(last), typed)
        place += not is_value and not is_flag(typed)
        last = "" if is_value else typed
    if last in takes:
        yield from _values(known[last], word)
        return
    if place == 0:
        yield from ((each.rpartition(" ")[2], summary_of(each))
                    for each in command_names(command.name))  # fmt: skip
    if command.arguments:
        yield from _values(command.arguments[min(place, len(command.arguments) - 1)], word)


def _is_optional_value(declared: DeclaredParameter | None, word: str) -> bool:
    """Return whether a word is the value of the option before it, which needs none."""
    accepts = None if declared is None or not declared.flags.alone else declared.flags.accepts
    return accepts is not None and accepts(word)


def _values(declared: DeclaredParameter, typed: str) -> Candidates:
    if declared.choices:
        return [(choice, "") for choice in declared.choices]
    return () if declared.flags.completes is None else declared.flags.completes(typed)
