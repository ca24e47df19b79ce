"""Who works on a node: a command, a Python function, a script for tests, or a model.

The steps of a scripted actor are done in their order, in the node's sandbox, and are the same on
every run: scripts are for tests, demos and trying a plan out without a key.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from cleveragents.domain.conditions import Template
from cleveragents.domain.error_record import ErrorCategory
from cleveragents.domain.inline_code import code_arguments
from cleveragents.domain.plan_collections import Either, Listed
from cleveragents.domain.plan_records import Kinds, PlanValue, Record, spec
from cleveragents.domain.plan_rules import (
    ANY_TEXT,
    At,
    Choice,
    Dollars,
    Findings,
    Flag,
    Number,
    Templated,
    Text,
    TreePath,
)

if TYPE_CHECKING:
    from cleveragents.domain.money import Money

TIMEOUT_S_MAX: Final = 604_800
_TEXT_CHARS_MAX: Final = 1_000_000
# In a shell, `${name}` is the shell's own; a dot never is.
_OURS_IN_SHELL: Final = re.compile(r"\$\{\s*(?:nodes|inputs|plan)\.")

_MODEL: Final = Text("the name of a model, such as `anthropic:sonnet`", chars_max=200)
_PROMPT: Final = Templated("text that says something", chars_max=_TEXT_CHARS_MAX, private=True)
_FILE: Final = TreePath("the path of a file inside the tree, such as `src/app.py`")
_COMMAND: Final = Either(
    Text("a program with its arguments as text", chars_max=_TEXT_CHARS_MAX),
    Listed(
        Templated("an argument without NUL", chars_max=_TEXT_CHARS_MAX, pattern=ANY_TEXT),
        "a program and its arguments",
        size_max=10_000,
        unique=False,
    ),
)


def settle_command(values: dict[str, Any], at: At, found: Findings) -> None:
    """Split text into arguments unless a shell shall read it, and refuse what is unsafe."""
    command, place = values["command"], (*at, "command")
    if isinstance(command, str) and not values["shell"]:
        command = _split(command, place, found)
        values["command"] = command
    if isinstance(command, tuple):
        if values["shell"]:
            found.add(place, "`command` must be one text when `shell` is true, got a list")
        elif not command or not command[0].strip():
            found.add(place, "`command` must start with the name of a program, got none")
        else:
            _refuse_data_as_code(command, place, found)
    elif isinstance(command, str) and _OURS_IN_SHELL.search(command):
        found.add(place, SHELL_TEMPLATE)


def _refuse_data_as_code(command: tuple[str, ...], place: At, found: Findings) -> None:
    """Refuse templates in what `sh -c`, `python -c` and their like would run."""
    for at in code_arguments(command):
        if Template.parse(command[at]).references:
            found.add((*place, at), CODE_TEMPLATE)


def shell_word(text: str) -> str | None:
    """Return the first unquoted word that only a shell understands, such as `&&`."""
    words = shlex.shlex(text, posix=False, punctuation_chars=True)
    words.commenters = ""
    return next((word for word in words if word and not set(word) - set("();<>|&")), None)


def _split(text: str, at: At, found: Findings) -> Any:
    try:
        words = shlex.split(text)
        if (word := shell_word(text)) is not None:
            says = f"`command` holds `{word}`, which only a shell understands"
            return found.add(at, f"{says}; set `shell: true`, or quote it")
    except ValueError as error:
        why = str(error).lower()
        return found.add(at, f"`command` cannot be split into arguments: {why}")
    return _COMMAND.read(words, at, found)


SHELL_TEMPLATE: Final = (
    "A template in a shell's text could run as code; hand it over in `env`, such as"
    ' `env: {FILE: "${inputs.file}"}`, and write `"$FILE"`'
)
CODE_TEMPLATE: Final = (
    "A template in a script on the command line could run as code; hand it over as a further"
    """ argument, such as `[sh, -c, 'echo "$1"', sh, "${item}"]`, or in `env`"""
)


@dataclass(frozen=True, slots=True)
class CommandActor(PlanValue):
    """Runs a program; its text output is the node's output."""

    command: tuple[str, ...] | str = spec(
        _COMMAND,
        "the program and its arguments; text is split as a shell would, and not run by one",
    )
    shell: bool = spec(Flag(), "let a shell read the command, with pipes and variables", False)

    @classmethod
    def settle(cls, values: dict[str, Any], at: At, found: Findings) -> None:
        """Split and check the command."""
        settle_command(values, at, found)


@dataclass(frozen=True, slots=True)
class PythonActor(PlanValue):
    """Calls a Python function with the node's inputs; what it returns is the node's output."""

    function: str = spec(
        Text(
            "`package.module:function`",
            chars_max=500,
            pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$",
        ),
        "the function to call, as `package.module:function`",
        key="python",
    )


@dataclass(frozen=True, slots=True)
class LlmActor(PlanValue):
    """Asks a model, which may use the node's tools."""

    model: str = spec(_MODEL, "the model to ask")
    prompt: str = spec(_PROMPT, "what to ask for")
    system: str | None = spec(_PROMPT, "standing orders for the model", None)
    temperature: float | None = spec(
        Number(0, 2, closed=True), "how freely the model chooses its words", None
    )
    tokens_max: int | None = spec(
        Number(1, 10_000_000, "tokens", whole=True), "longest answer of one call", None
    )
    lower_tokens: bool = spec(
        Flag(), "ask for a shorter answer where the budget has no room for the longest", True
    )
    turns_max: int = spec(
        Number(1, 1_000, "answers", whole=True), "how often the model may answer", 40
    )
    call_timeout_s: float = spec(
        Number(0, TIMEOUT_S_MAX, "seconds"), "how long one answer may take", 600.0
    )
    fall_back: tuple[str, ...] = spec(
        Listed(_MODEL, "names of models"), "models to ask in this order when one cannot answer", ()
    )
    base_url: str | None = spec(
        Text("the address of a server", chars_max=2_000, pattern=r"^https?://[^\s/]+\S*$"),
        "where `model` and others of its provider are served, when not at the provider",
        None,
    )

    def base_url_of(self, model: str) -> str | None:
        """Return where one of the models is served; None is at its own provider."""
        # Another provider speaks another protocol, and a server of one has no models of the other.
        return self.base_url if model.partition(":")[0] == self.model.partition(":")[0] else None


@dataclass(frozen=True, slots=True)
class WriteStep(PlanValue):
    """Makes or replaces a file."""

    path: str = spec(_FILE, "the file to write", key="write")
    text: str = spec(
        Templated("text", chars_max=_TEXT_CHARS_MAX, pattern=ANY_TEXT), "its whole content"
    )


@dataclass(frozen=True, slots=True)
class EditStep(PlanValue):
    """Replaces a text that stands in a file exactly once; anything else fails the node."""

    path: str = spec(_FILE, "the file to edit", key="edit")
    old: str = spec(Text(chars_max=_TEXT_CHARS_MAX), "the text to replace")
    new: str = spec(
        Templated("text", chars_max=_TEXT_CHARS_MAX, pattern=ANY_TEXT), "what to put there"
    )


@dataclass(frozen=True, slots=True)
class DeleteStep(PlanValue):
    """Deletes a file; one that is not there fails the node."""

    path: str = spec(_FILE, "the file to delete", key="delete")


@dataclass(frozen=True, slots=True)
class PrintStep(PlanValue):
    """Adds a line to the node's text output."""

    text: str = spec(
        Templated("text", chars_max=_TEXT_CHARS_MAX, pattern=ANY_TEXT), "the line", key="print"
    )


@dataclass(frozen=True, slots=True)
class FailStep(PlanValue):
    """Fails the attempt; what stands before it is done, what stands after it is not."""

    message: str = spec(Text("text", chars_max=2_000), "what the error says", key="fail")
    category: ErrorCategory = spec(
        Choice(ErrorCategory), "the kind of fault, which decides the cure", ErrorCategory.TOOL_CRASH
    )
    attempts: int | None = spec(
        Number(1, 100, whole=True), "fail only this many attempts, then pass; all by default", None
    )


@dataclass(frozen=True, slots=True)
class SpendStep(PlanValue):
    """Reserves and spends money on the node's account, as a call of a model would."""

    amount: Money = spec(Dollars(), "how much, in USD", key="spend")


@dataclass(frozen=True, slots=True)
class SleepStep(PlanValue):
    """Waits by the plan's clock, which in tests does not let anybody wait."""

    until_s: float = spec(
        Number(0, TIMEOUT_S_MAX, "seconds"),
        "wait until so many seconds after the attempt began",
        key="sleep_until_s",
    )


Step: TypeAlias = WriteStep | EditStep | DeleteStep | PrintStep | FailStep | SpendStep | SleepStep
STEP: Final = Kinds(
    "a step",
    {
        "write": WriteStep,
        "edit": EditStep,
        "delete": DeleteStep,
        "print": PrintStep,
        "fail": FailStep,
        "spend": SpendStep,
        "sleep_until_s": SleepStep,
    },
)


@dataclass(frozen=True, slots=True)
class ScriptedActor(PlanValue):
    """Does the same steps on every run."""

    steps: tuple[Step, ...] = spec(
        Listed(STEP, "steps", size_max=10_000, unique=False),
        "what to do, in this order",
        key="scripted",
    )


Actor: TypeAlias = CommandActor | PythonActor | ScriptedActor | LlmActor
ACTOR: Final = Kinds(
    "an actor",
    {
        "command": CommandActor,
        "python": PythonActor,
        "scripted": ScriptedActor,
        "llm": LlmActor,
    },
)


@dataclass(frozen=True, slots=True)
class Check(PlanValue):
    """A command that must pass before a node counts as done; it changes nothing."""

    command: tuple[str, ...] | str = spec(
        _COMMAND, "the program and its arguments, as for an actor"
    )
    shell: bool = spec(Flag(), "let a shell read the command", False)
    timeout_s: float = spec(Number(0, TIMEOUT_S_MAX, "seconds"), "how long it may take", 300.0)

    @classmethod
    def settle(cls, values: dict[str, Any], at: At, found: Findings) -> None:
        """Split and check the command."""
        settle_command(values, at, found)


CHECK: Final = Record(Check, short="command")
