"""What works on this machine, looked at without leaving anything behind."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing, suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cleveragents.domain.errors import CleverAgentsError
from cleveragents.domain.wording import counted
from cleveragents.infrastructure.git.program import git_program
from cleveragents.infrastructure.git.repository import GitRepository
from cleveragents.infrastructure.sandbox.confinement import Bubblewrap, probe_bubblewrap
from cleveragents.infrastructure.sandbox.layers import Layers
from cleveragents.infrastructure.sandbox.overlay import OverlayKind
from cleveragents.infrastructure.sandbox.workshop import Workshop
from cleveragents.infrastructure.schema import APPLICATION_ID, steps

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PYTHON_MIN: Final = (3, 11)
#: A store that cannot grow by this much will soon stop the work.
ROOM_BYTES_MIN: Final = 100 * 1024 * 1024
#: The variable that each provider's key is looked for in; the first that is set counts.
KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "anthropic": ("ANTHROPIC_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "google": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "mistral": ("MISTRAL_API_KEY",),
    "groq": ("GROQ_API_KEY",),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "xai": ("XAI_API_KEY",),
    "cohere": ("CO_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY",),
    "azure": ("AZURE_OPENAI_API_KEY",),
    "bedrock": ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_BEARER_TOKEN_BEDROCK"),
}
_PROGRAM_S_MAX: Final = 5.0
_EXTRA: Final = re.compile(r"""^([\w.-]+).*;.*\bextra\s*==\s*['"]([\w.-]+)['"]""")


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at; without the basic ones nothing works."""

    name: str
    works: bool
    says: str
    hint: str | None = None
    basic: bool = False


def look(
    root: Path, store: Path, environment: Mapping[str, str], index: str = "auto"
) -> tuple[Check, ...]:
    """Look at everything; no file is left, no value of a variable is told.

    `index` is the setting `context_index_folder`.
    """
    return (
        _python(),
        _git(),
        _store(store),
        _index(index),
        _tree(root),
        _overlay(root),
        _bubblewrap(),
        _program("ripgrep", "rg", "Install ripgrep: context is found faster with it"),
        _keys(environment),
        *_extras(),
    )


def _python() -> Check:
    version = platform.python_version()
    free = "" if getattr(sys, "_is_gil_enabled", lambda: True)() else ", free-threaded"
    works = sys.version_info >= PYTHON_MIN
    says = f"{platform.python_implementation()} {version}{free}, {platform.system()}"
    return Check("python", works, says, None if works else "Install Python 3.11 or later", True)


def _git() -> Check:
    try:
        says = _said(git_program(), "version")
    except CleverAgentsError as error:
        return Check("git", False, error.message, error.hint, True)
    return Check("git", True, says, basic=True)


# -- where things are kept -----------------------------------------------------------------


def _store(path: Path) -> Check:
    folder = next(one for one in path.absolute().parents if one.is_dir())
    free = shutil.disk_usage(folder).free
    room = f"{free / 1024**3:.1f} GiB free"
    if free < ROOM_BYTES_MIN:
        return Check("store", False, f"{path}: {room}", "Free room on this disk", True)
    if not path.exists():
        works = os.access(folder, os.W_OK | os.X_OK)
        hint = None if works else f"Make `{folder}` writable, or name another file in `store`"
        return Check("store", works, f"{path}: made when it is needed, {room}", hint, True)
    try:
        # `rw` makes no file either, and the last to close takes `-wal` and `-shm` away.
        uri = f"{path.absolute().as_uri()}?mode=rw"
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            connection.execute("PRAGMA query_only = ON")
            owner, version = _marks(connection)
    except sqlite3.Error as error:
        return Check("store", False, f"{path}: {error}", "Put back a backup of the store", True)
    newest = len(steps())
    if owner != APPLICATION_ID:
        hint = "Name another file in the setting `store`"
        return Check("store", False, f"{path}: of another program", hint, True)
    if version > newest:
        hint = "Install the version of CleverAgents that wrote it, or a newer one"
        return Check("store", False, f"{path}: version {version} of {newest}", hint, True)
    return Check("store", True, f"{path}: version {version} of {newest}, {room}", basic=True)


def _marks(connection: sqlite3.Connection) -> tuple[int, int]:
    owner = connection.execute("PRAGMA application_id").fetchone()[0]
    return owner, connection.execute("PRAGMA user_version").fetchone()[0]


def _index(setting: str) -> Check:
    if setting == "off":
        hint = "Set `context_index_folder` to `auto`: context is found better with an index"
        return Check("code index", False, "switched off by `context_index_folder`", hint)
    try:
        from cleveragents.infrastructure.code_index.upkeep import kept
    except ImportError as error:  # a package that it needs is broken; that is to be told here
        return Check("code index", False, str(error), "Install CleverAgents again")
    found = kept(None if setting == "auto" else Path(setting))
    if found.trouble is not None:
        hint = f"Make `{found.path.parent}` usable, or run `cleveragents context --rebuild`"
        return Check("code index", False, f"{found.path}: {found.trouble}", hint)
    if found.size_bytes == 0:
        return Check("code index", True, f"{found.path}: made when it is needed")
    files, trees = counted(found.files, "file"), counted(found.trees, "tree")
    size = f"{found.size_bytes / 1024**2:.1f} MiB"
    return Check("code index", True, f"{found.path}: {files} of {trees}, {size}")


def _tree(root: Path) -> Check:
    what = "a git repository" if (root / ".git").exists() else "no git repository, which is fine"
    works = os.access(root, os.R_OK | os.W_OK | os.X_OK)
    hint = None if works else f"Make `{root}` readable and writable"
    return Check("tree", works, f"{root}: {what}", hint, True)


# -- how attempts are kept apart -----------------------------------------------------------


def _overlay(root: Path) -> Check:
    """Try a real mount, beside the store where that has a folder: file systems differ."""
    home = root / ".cleveragents"
    try:
        with tempfile.TemporaryDirectory(
            prefix="doctor-", dir=home if home.is_dir() else None
        ) as folder:
            why = _why_no_overlay(Path(folder))
    except (OSError, CleverAgentsError) as error:
        why = str(error)
    if why is None:
        return Check("overlay", True, "sandboxes are made in milliseconds")
    hint = "Install util-linux and allow user namespaces; until then sandboxes are copies"
    return Check("overlay", False, why, hint)


def _why_no_overlay(folder: Path) -> str | None:
    workshop = Workshop(folder)
    layers = Layers(GitRepository(folder, folder), workshop)
    kind = OverlayKind(layers, layers.home / "sandboxes")
    try:
        return kind.why_not()
    finally:
        kind.close()
        workshop.close()


def _bubblewrap() -> Check:
    found = probe_bubblewrap()
    if isinstance(found, Bubblewrap):
        return Check("bubblewrap", True, f"commands are confined by {found.program}")
    return Check("bubblewrap", False, found, "Install bubblewrap; until then nothing is confined")


def _program(name: str, command: str, hint: str) -> Check:
    found = shutil.which(command)
    if found is None:
        return Check(name, False, f"`{command}` is not installed", hint)
    return Check(name, True, _said(found, "--version") or found)


def _said(program: str, *arguments: str) -> str:
    """Return the first line that a program prints; nothing when it does not work."""
    with suppress(OSError, subprocess.TimeoutExpired):
        ran = subprocess.run(
            [program, *arguments], capture_output=True, check=False, timeout=_PROGRAM_S_MAX
        )
        return ran.stdout.decode("utf-8", "replace").partition("\n")[0].strip()
    return ""


# -- models --------------------------------------------------------------------------------


def _keys(environment: Mapping[str, str]) -> Check:
    present = [
        variable
        for variables in KEYS.values()
        for variable in [next((one for one in variables if environment.get(one)), None)]
        if variable is not None
    ]
    if present:
        return Check("keys", True, ", ".join(present))
    hint = "Set a variable such as `ANTHROPIC_API_KEY`; actors without a model need none"
    return Check("keys", False, "none of the known variables is set", hint)


def _extras() -> Iterator[Check]:
    for extra, needed in _extra_requirements().items():
        missing = [one for one in needed if not _is_installed(one)]
        says = f"without {', '.join(missing)}" if missing else "installed"
        hint = f"Run `pip install 'cleveragents[{extra}]'` if you want it" if missing else None
        yield Check(f"extra {extra}", not missing, says, hint)


def _extra_requirements() -> dict[str, list[str]]:
    """Return what each extra of ours brings, but for what only our benchmarks measure."""
    extras: dict[str, list[str]] = {}
    with suppress(metadata.PackageNotFoundError):
        for line in metadata.requires("cleveragents") or ():
            found = _EXTRA.match(line)
            if found is not None and found[2] != "bench":
                extras.setdefault(found[2], []).append(found[1])
    return extras


def _is_installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True
