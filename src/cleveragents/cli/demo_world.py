"""The world of the demo: a repository, a scripted model that fails, a strategy that recovers."""

from __future__ import annotations

import os
import random
import subprocess
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cleveragents.domain.errors import SetupError
from cleveragents.domain.fragment import Fragment
from cleveragents.domain.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cleveragents.domain.context_request import ContextRequest
    from cleveragents.domain.stop_signal import StopSignal

PROVIDER: Final = "demo"
MODEL: Final = "scripted"
#: As the price table knows it.
PRICED: Final = f"{PROVIDER}:{MODEL}"
OUTPUT_TOKENS_MAX: Final = 800
TURNS: Final = 3
#: The sick strategy heals in its second pause, so that one probe fails and one succeeds.
SICK_PAUSES: Final = 2


def part_path(actor: int) -> str:
    """Return the file that an actor works on."""
    return f"shop/part_{actor:02}.py"


def part_source(actor: int) -> str:
    """Return what the file says before anybody touched it."""
    return (
        f'"""Part {actor} of the shop."""\n\n\n'
        f"def total_{actor:02}(prices):\n"
        "    result = 0\n"
        "    for price in prices:\n"
        "        result += price\n"
        "    return result\n"
    )


def make_repository(root: Path, actors: int) -> None:
    """Make a git repository with one small module for each actor."""
    (root / "shop").mkdir(parents=True)
    for actor in range(actors):
        (root / part_path(actor)).write_text(part_source(actor), encoding="utf-8")
    git(root, "init", "--quiet")
    git(root, "add", ".")
    author = ("-c", "user.name=CleverAgents demo", "-c", "user.email=demo@example.com")
    git(root, *author, "commit", "--quiet", "--message", "the shop before the actors came")


def git(root: Path, *arguments: str, stdin: str = "") -> str:
    """Run git in a folder and return what it printed.

    Whatever the user's environment and configuration say about git, it works on this folder alone.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(  # arguments are ours, none comes from outside
            ["git", *arguments],  # noqa: S607  # the user's own git
            cwd=root,
            env=environment | {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull},
            input=stdin,
            capture_output=True,
            text=True,
            check=True,
        )
    except FileNotFoundError:
        raise SetupError(
            "The demo needs `git`, and there is none on the PATH",
            code="CA1006",
            hint="Install git, then run `cleveragents demo` again",
        ) from None
    return done.stdout


class ScriptedFailure(Exception):  # noqa: N818  # stands for any provider's exception
    """A provider's error as SDKs show it: a status and headers, no category."""

    def __init__(self, status_code: int, message: str, headers: dict[str, str]) -> None:
        super().__init__(message)
        self.status_code = status_code
        self.headers = headers


class EmptyAnswer(ValueError):  # noqa: N818  # named by what the model did
    """The model answered, was paid for it, and said nothing."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the scripted model says and what it used."""

    text: str
    usage: Usage


class ScriptedModel:
    """Answers one actor by a script: the same seed gives the same answers and failures."""

    def __init__(self, seed: int, actor: int) -> None:
        self._chance = random.Random(f"{seed}/{actor}")  # noqa: S311  # a script, not a secret
        self._failures = self._chance.sample(
            ["none", "none", "limited", "overloaded", "refused", "silent", "empty"], TURNS
        )

    def call(self, turn: int, input_tokens: int, stop: threading.Event) -> Answer:
        """Answer after a short while, or fail as the script says, each time once."""
        stop.wait(self._chance.uniform(0.005, 0.03))
        failure, self._failures[turn] = self._failures[turn], "none"
        used = Usage(
            input_tokens=input_tokens,
            output_tokens=self._chance.randrange(100, OUTPUT_TOKENS_MAX),
        )
        match failure:
            case "limited":
                raise ScriptedFailure(429, "Too many requests", {"retry-after": "0.05"})
            case "overloaded":
                raise ScriptedFailure(529, "Overloaded", {})
            case "refused":
                raise ConnectionRefusedError("nobody answers at the provider's door")
            case "silent":
                raise TimeoutError("no answer in time; it may have been billed")
            case "empty":
                return Answer("", used)
        return Answer(f"turn {turn + 1}", used)


class SickIndex:
    """A context strategy that fails until it is healed."""

    name: Final = "sick-index"

    def __init__(self) -> None:
        self.well = threading.Event()

    def find(self, request: ContextRequest, stop: StopSignal) -> Iterator[Fragment]:
        """Raise while sick, then find the first line of each named file."""
        if not self.well.is_set():
            raise OSError("the index cannot be read")
        for path in request.files:
            stop.raise_if_stopped()
            first, *_ = (request.root / path).read_text(encoding="utf-8").splitlines()
            yield Fragment(path, 1, 1, first, 1.0, self.name, "first line of a named file")
