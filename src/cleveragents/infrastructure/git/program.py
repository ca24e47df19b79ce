"""The program git, run without anything of the user's configuration or environment."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from cleveragents.domain.errors import SandboxError, SetupError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

#: The first version whose `merge-tree` merges whole commits without a working tree.
VERSION_MIN: Final = (2, 38)

_SAID_CHARS_MAX: Final = 500
# Through a pipe, a content goes page by page.
_PIPED_BYTES_MAX: Final = 1_000_000
# Of git's variables those that say where its configuration is, and where repositories end.
_HARMLESS: Final = (
    "GIT_CEILING_DIRECTORIES",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_SYSTEM",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
)
#: No program runs that a repository names, whoever wrote its settings.
UNARMED: Final = {"core.fsmonitor": "false", "core.hooksPath": os.devnull}


@cache
def git_program() -> str:
    """Return the git on the path, or say what is missing; asked once."""
    found = shutil.which("git")
    if found is None:
        raise SetupError(
            "The program `git` is not installed", code="CA1006", hint="Install git 2.38 or later"
        )
    said = subprocess.run([found, "version"], capture_output=True, check=False, text=True).stdout
    number = re.search(r"(\d+)\.(\d+)", said)
    if number is None or tuple(map(int, number.groups())) < VERSION_MIN:
        raise SandboxError(
            f"Git must be of version 2.38 or later, got {said.strip()!r}",
            code="CA5101",
            hint="Install a newer git and put it on the PATH",
        )
    return found


def foreign_environment() -> dict[str, str]:
    """Return the environment without the variables that would lead git to another repository."""
    return {
        name: value
        for name, value in os.environ.items()
        if name in _HARMLESS or not name.startswith("GIT_")
    }


def configured(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that set these for one run of git, above every file of settings."""
    told = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings.items()):
        told |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return told


def clean_environment() -> dict[str, str]:
    """Return the environment for work in our own repository: nobody's configuration, plain text."""
    return {
        **foreign_environment(),
        **configured(UNARMED),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_AUTHOR_NAME": "cleveragents",
        "GIT_AUTHOR_EMAIL": "cleveragents",
        "GIT_AUTHOR_DATE": "@0 +0000",
        "GIT_COMMITTER_NAME": "cleveragents",
        "GIT_COMMITTER_EMAIL": "cleveragents",
        "GIT_COMMITTER_DATE": "@0 +0000",
        "LC_ALL": "C",
    }


def run_git(
    arguments: tuple[str, ...],
    environment: Mapping[str, str],
    *,
    stdin: bytes = b"",
    folder: Path | None = None,
    fine: tuple[int, ...] = (0,),
) -> subprocess.CompletedProcess[bytes]:
    """Run git once; an exit code that is not among the fine ones is refused with CA5101."""
    with _handed_over(stdin) as given:
        ran = subprocess.run(
            [git_program(), *arguments],
            env=environment,
            cwd=folder,
            capture_output=True,
            check=False,
            **given,
        )
    if ran.returncode not in fine:
        said = ran.stderr.decode("utf-8", "replace").strip()[-_SAID_CHARS_MAX:]
        raise refused(arguments[0], said)
    return ran


@contextmanager
def _handed_over(stdin: bytes) -> Iterator[dict[str, Any]]:
    """Give git its input: through a pipe, or much of it as a file, which it reads as fast."""
    if len(stdin) < _PIPED_BYTES_MAX:
        yield {"input": stdin}
        return
    with tempfile.TemporaryFile() as file:
        file.write(stdin)
        file.seek(0)
        yield {"stdin": file}


def refused(verb: str, said: str) -> SandboxError:
    """Return the error for what git would not do."""
    lines = said.splitlines() or ["it did not say why"]
    told = next((line for line in lines if line.startswith(("fatal:", "error:"))), lines[-1])
    trust = re.search(r"^\s*(git config --global --add safe\.directory .+)$", said, re.MULTILINE)
    return SandboxError(
        f"`git {verb}` refused: {told.rstrip('.')}",
        code="CA5101",
        facts={"git": said.strip()},
        hint=trust and f"Run `{trust[1]}` if you trust whoever owns it",
    )
