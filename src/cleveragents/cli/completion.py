"""`cleveragents completion`: what a shell needs to complete our commands, made from the grammar."""

from __future__ import annotations

import argparse
import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cleveragents.cli import output
from cleveragents.cli.grammar import parser

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Mapping

PROGRAMS: Final = ("cleveragents", "clever")
#: Values that are names of files; of all others only the user knows what comes.
_FILES: Final = ("FILE", "PATH")


@dataclass(frozen=True, slots=True)
class Value:
    """What may follow: one of some words, a file, or something that only the user knows."""

    choices: tuple[str, ...] = ()
    is_file: bool = False


@dataclass(frozen=True, slots=True)
class Option:
    """A flag with its spellings; without a value it stands alone."""

    flags: tuple[str, ...]
    about: str
    value: Value | None


@dataclass(frozen=True, slots=True)
class Command:
    """A command by the words that lead to it, and what may follow them."""

    words: tuple[str, ...]
    commands: tuple[tuple[str, str], ...]
    options: tuple[Option, ...]
    arguments: tuple[Value, ...]

    @property
    def path(self) -> str:
        """The words as one text; that of the program itself is empty."""
        return " ".join(self.words)


def completion(options: Namespace) -> int:
    """Print the script for a shell."""
    script = SHELLS[options.shell](tuple(grammar()))
    if options.json:
        output.record({"kind": "completion", "shell": options.shell, "script": script})
    else:
        output.data(script)
    return 0


def grammar(
    command: argparse.ArgumentParser | None = None, words: tuple[str, ...] = ()
) -> Iterator[Command]:
    """Yield every command of the grammar, the program itself first."""
    command = command or parser()
    named: list[tuple[str, str]] = []
    inner: dict[str, argparse.ArgumentParser] = {}
    flags, arguments = [], []
    for action in command._actions:  # noqa: SLF001  # the grammar has no other list of them
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001  # it has no other name
            named = [(one.dest, one.help or "") for one in action._choices_actions]  # noqa: SLF001  # likewise
            inner = action.choices
        elif action.option_strings:
            value = None if action.nargs == 0 else _value(action)
            flags.append(Option(tuple(action.option_strings), action.help or "", value))
        else:
            arguments.append(_value(action))
    yield Command(words, tuple(named), tuple(flags), tuple(arguments))
    for name, one in inner.items():
        yield from grammar(one, (*words, name))


def _value(action: argparse.Action) -> Value:
    name = action.metavar if isinstance(action.metavar, str) else ""
    return Value(tuple(map(str, action.choices or ())), name.startswith(_FILES))


# -- the shells ----------------------------------------------------------------------------

# Not `path` and `words`: in zsh, which runs this too, these names mean something else.
_BASH: Final = """\
# Completion of cleveragents; load it with: source <(cleveragents completion SHELL)
_cleveragents() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}
    local at= word= offer= files= number
    # `--take=mine` comes as three words.
    [[ $cur == = ]] && cur=
    [[ $prev == = ]] && prev=${COMP_WORDS[COMP_CWORD-2]}
    for ((number = 1; number < COMP_CWORD; number++)); do
        word=${COMP_WORDS[number]}
        case "${at:+$at }$word" in
            PATHS) at="${at:+$at }$word" ;;
        esac
    done
    case "$at|$prev" in
VALUES
        *)
            case "$at" in
OFFERS
            esac
            [[ $cur != -* ]] || files=
            ;;
    esac
    COMPREPLY=($(compgen -W "$offer" -- "$cur"))
    if [[ $files ]]; then
        local IFS=$'\\n'
        COMPREPLY+=($(compgen -f -- "$cur"))
    fi
}
complete -o filenames -F _cleveragents PROGRAMS"""

_ZSH: Final = """\
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }
autoload -U +X bashcompinit && bashcompinit
"""

_FISH: Final = """\
# Completion of cleveragents; load it with: cleveragents completion fish | source
function __cleveragents_at --description 'Whether the words so far lead to this command'
    set -l known KNOWN
    set -l at
    for word in (commandline -opc)[2..-1]
        if contains -- (string join -- ' ' $at $word) $known
            set at $at $word
        end
    end
    set -l joined (string join -- ' ' $at)
    test "$joined" = "$argv[1]"
end"""


def _bash(commands: tuple[Command, ...]) -> str:
    values, offers = [], []
    for one in commands:
        for option in one.options:
            if option.value is not None:
                cases = "|".join(f'"{one.path}|{flag}"' for flag in option.flags)
                values.append(f"        {cases}) {_offer(option.value.choices, option.value)} ;;")
        names = [name for name, _ in one.commands]
        choices = [word for value in one.arguments for word in value.choices]
        flags = [flag for option in one.options for flag in option.flags]
        files = Value(is_file=any(value.is_file for value in one.arguments))
        offer = _offer((*names, *choices, *flags), files)
        offers.append(f'                "{one.path}") {offer} ;;')
    parts = {
        "SHELL": "bash",
        "PATHS": "|".join(f'"{one.path}"' for one in commands if one.words),
        "VALUES": "\n".join(values),
        "OFFERS": "\n".join(offers),
        "PROGRAMS": " ".join(PROGRAMS),
    }
    return _filled(_BASH, parts)


def _offer(words: tuple[str, ...], value: Value) -> str:
    return f"offer={shlex.quote(' '.join(words))}" + (" files=yes" if value.is_file else "")


def _zsh(commands: tuple[Command, ...]) -> str:
    # Zsh runs completions of bash: there is one script to keep right, not two.
    first, rest = _bash(commands).split("\n", 1)
    return f"{first.replace('bash', 'zsh')}\n{_ZSH}{rest}"


def _fish(commands: tuple[Command, ...]) -> str:
    known = " ".join(shlex.quote(one.path) for one in commands if one.words)
    lines = [_filled(_FISH, {"KNOWN": known})]
    for program in PROGRAMS:
        for one in commands:
            begin = f"complete -c {program} -n \"__cleveragents_at '{one.path}'\""
            is_file = any(value.is_file for value in one.arguments)
            lines.append(f"{begin} {'-F' if is_file else '-f'}")
            lines += [f"{begin} -a {name} -d {_fish_text(about)}" for name, about in one.commands]
            choices = [word for value in one.arguments for word in value.choices]
            lines += [f"{begin} -a {word}" for word in choices]
            lines += [f"{begin} {_fish_option(option)}" for option in one.options]
    return "\n".join(lines)


def _fish_option(option: Option) -> str:
    words = [
        f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags
    ]
    if option.value is not None:
        words.append("-r -F" if option.value.is_file else "-x")
        if option.value.choices:
            words.append(f"-a {shlex.quote(' '.join(option.value.choices))}")
    return " ".join([*words, f"-d {_fish_text(option.about)}"])


def _filled(script: str, parts: Mapping[str, str]) -> str:
    """Put the parts into a script, each in the place that has its name."""
    return re.sub(rf"\b({'|'.join(parts)})\b", lambda found: parts[found[0]], script)


def _fish_text(text: str) -> str:
    # Inside its single quotes fish reads a backslash before a quote and before itself.
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


SHELLS: Final = {"bash": _bash, "zsh": _zsh, "fish": _fish}
