"""What programs need of the folders that confinement hides, such as tools kept in the home.

A program is more than its file: links lead to it, an interpreter runs it, libraries lie beside
its `bin`. Those folders are shown, read-only; what a person keeps secret near them is not.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = [
    "ProgramFolders",
    "confined_home",
    "find_program",
    "hidden_folders",
    "is_inside",
    "search_path",
    "secrets_of_machine",
]

_TEMPORARY: Final = "/tmp"  # noqa: S108  # a private one
#: What belongs to people and to running services; commands find these folders empty.
_PRIVATE: Final = (
    *("/home", "/root", "/media", "/mnt", "/srv"),
    *("/run", _TEMPORARY, "/var/run", "/var/tmp"),  # noqa: S108  # hidden
    *("/var/backups", "/var/lib", "/var/log", "/var/mail", "/var/snap", "/var/spool", "/var/www"),
)
#: What programs of the system keep where services keep their data.
_OF_PROGRAMS: Final = (
    *("aspell", "dictionaries-common", "dpkg", "emacsen-common", "gems", "ghc", "ispell"),
    *("pacman", "rpm", "sgml-base", "texmf", "xml-core"),
)
#: Keys and passwords of the machine, in `/etc`; masked where we may read them.
_SECRET_OF_MACHINE: Final = (
    *("NetworkManager/system-connections", "docker", "gshadow*", "krb5.keytab", "kubernetes"),
    *("letsencrypt", "openvpn", "pki/*/private", "ppp", "rancher", "security/opasswd", "shadow*"),
    *("ssh/ssh_host_*_key", "ssl/private", "sudoers", "sudoers.d", "wireguard"),
)
#: Folders of programs, whose libraries lie beside them.
_BESIDE_LIBRARIES: Final = {"bin", "shims"}
#: What some folders of programs need besides, in the home.
_COMPANIONS: Final = {".cargo/bin": ".rustup", ".local/bin": ".local/lib"}
#: Folders of the home that hold more than one program: never shown as a whole.
_MIXED: Final = (".cache", ".config", ".local", ".local/share")
#: Keys and tokens in the home: masked if a folder around them is shown.
_SECRET: Final = (
    ".aws",
    ".azure",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".config/gcloud",
    ".config/gh",
    ".config/git/credentials",
    ".docker",
    ".gem/credentials",
    ".git-credentials",
    ".gnupg",
    ".kube",
    ".local/share/keyrings",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".ssh",
)
_HOPS_MAX: Final = 40
_SHEBANG_BYTES_MAX: Final = 256


def is_inside(path: str, folder: str) -> bool:
    """Tell whether a path is the folder or lies in it, by the names alone."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def hidden_folders(home: str) -> tuple[str, ...]:
    """Return the real folders that commands shall find empty, none inside another."""
    real = {os.path.realpath(one) for one in (*_PRIVATE, home)} - {"/"}
    there = sorted(one for one in real if Path(one).is_dir())
    return tuple(
        one for one in there if not any(one != other and is_inside(one, other) for other in there)
    )


def secrets_of_machine(
    etc: Path = Path("/etc"), *, apart: Iterable[str] = ()
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the folders and the files of secrets that we may read, and commands shall not.

    What lies in folders that are `apart`, because they are hidden or readable anyway, is left out.
    """
    places = (place for pattern in _SECRET_OF_MACHINE for place in etc.glob(pattern))
    real = {os.path.realpath(place) for place in places if os.access(place, os.R_OK)}
    found = sorted(one for one in real if not any(is_inside(one, other) for other in apart))
    return (
        tuple(one for one in found if Path(one).is_dir()),
        tuple(one for one in found if Path(one).is_file()),
    )


def confined_home(home: str) -> str:
    """Return where a confined command finds its empty home: the user's, if that can be hidden."""
    real = os.path.realpath(home)
    hidden = home.startswith("/") and any(is_inside(real, one) for one in hidden_folders(home))
    return home if hidden else _TEMPORARY


def search_path(path: str) -> tuple[str, ...]:
    """Return the folders of a `PATH`; relative ones depend on where a command runs, and are not."""
    return tuple(one for one in path.split(os.pathsep) if one.startswith("/"))


def find_program(name: str, folders: Iterable[str]) -> str | None:
    """Return where a program is, by its absolute path or by the folders of a `PATH`."""
    places = [name] if name.startswith("/") else []
    if "/" not in name:
        places = [f"{folder}/{name}" for folder in folders]
    return next((one for one in places if os.access(one, os.X_OK) and Path(one).is_file()), None)


@dataclass(slots=True)
class ProgramFolders:
    """Collects what is to be shown of the hidden folders; made for one command.

    `folders` are real paths to show, `links` names that lead to real paths, `masked` what is
    to stay hidden inside shown folders.
    """

    home: str
    hidden: tuple[str, ...]
    #: Never shown from outside: the sandbox stands in its place.
    apart: str
    _found: set[str] = field(default_factory=set)
    # Folders that were looked at: most links of a folder lead to the same few.
    _seen: set[str] = field(default_factory=set)
    _links: dict[str, str] = field(default_factory=dict)
    _home: str = field(init=False)

    def __post_init__(self) -> None:
        self._home = os.path.realpath(self.home)

    @property
    def folders(self) -> tuple[str, ...]:
        """What to show, none inside another."""
        return tuple(
            one
            for one in sorted(self._found)
            if not any(one != other and is_inside(one, other) for other in self._found)
        )

    @property
    def links(self) -> dict[str, str]:
        """Names by which programs are called, and the shown or visible path that each leads to."""
        shown = [*self._found, self.apart]
        links: dict[str, str] = {}
        for name, real in sorted(self._links.items()):
            # Inside a shown folder, or behind a link to one, the name is there already.
            if not any(is_inside(name, one) for one in (*shown, *links)):
                links[name] = real
        return links

    def show_data_of_programs(self) -> None:
        """Show what programs of the system need of the folder of services."""
        for name in _OF_PROGRAMS:
            self.show(f"/var/lib/{name}")

    @property
    def masked_folders(self) -> tuple[str, ...]:
        """Folders of secrets that lie inside what is shown."""
        return tuple(one for one in self._masked() if Path(one).is_dir())

    @property
    def masked_files(self) -> tuple[str, ...]:
        """Files of secrets that lie inside what is shown."""
        return tuple(one for one in self._masked() if Path(one).is_file())

    def _masked(self) -> Iterator[str]:
        for secret in (f"{self._home}/{one}" for one in _SECRET):
            inside = any(secret != one and is_inside(secret, one) for one in self._found)
            # What a link leads to is hidden where it is.
            if inside and os.access(secret, os.F_OK) and not Path(secret).is_symlink():
                yield secret

    def show(self, path: str) -> None:
        """Show a file or folder that is asked for by name."""
        real = os.path.realpath(path)
        # What cannot be looked at is of no use to a command either.
        if self._is_hidden(real) and os.access(real, os.F_OK):
            self._found.add(real)
        if path != real and self._is_hidden(self._in_real_folder(path)):
            self._links[self._in_real_folder(path)] = real

    def show_search_folder(self, folder: str) -> None:
        """Show a folder of programs, with what its links and its environment lead to."""
        if not self._is_hidden(folder) and not self._is_hidden(os.path.realpath(folder)):
            return
        self._show_home_of(folder)
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_symlink():
                    self._show_hops(entry.path)

    def show_program(self, path: str, *, depth: int = 3) -> None:
        """Show a program: where its links lead, and what interprets it."""
        last = self._show_hops(path)
        for interpreter in _interpreters(last) if depth else ():
            self.show_program(interpreter, depth=depth - 1)

    def _show_hops(self, path: str) -> str:
        """Show the folder of each link on the way to a file; return the file."""
        for _ in range(_HOPS_MAX):
            folder, name = os.path.split(path)
            self._show_home_of(folder)
            real = os.path.realpath(folder)
            self._show_home_of(real)
            try:
                target = os.fspath(Path(real, name).readlink())
            except OSError:
                break
            path = os.path.normpath(f"{real}/{target}" if target[:1] != "/" else target)
        return path

    def _show_home_of(self, folder: str) -> None:
        """Show a folder of programs, the whole installation if it is one."""
        if folder in self._seen:
            return
        self._seen.add(folder)
        for relative, companion in _COMPANIONS.items():
            if os.path.realpath(folder) == f"{self._home}/{relative}":
                self.show(f"{self._home}/{companion}")
        parent, name = os.path.split(folder)
        if name in _BESIDE_LIBRARIES and self._may_show(os.path.realpath(parent)):
            self.show(parent)
            for base in _base_of(parent):
                self._show_home_of(base)
        elif self._may_show(os.path.realpath(folder)):
            self.show(folder)

    def _may_show(self, real: str) -> bool:
        secrets = [f"{self._home}/{one}" for one in _SECRET]
        of_much = {*self.hidden, *secrets, *(f"{self._home}/{one}" for one in _MIXED)}
        if real in of_much or is_inside(self._home, real):
            return False
        # Programs may be installed beside a key; nothing else there is shown.
        is_installed = Path(real).name in _BESIDE_LIBRARIES
        return is_installed or not any(is_inside(real, one) for one in secrets)

    def _is_hidden(self, path: str) -> bool:
        hidden = any(is_inside(path, one) for one in self.hidden)
        return hidden and not is_inside(path, self.apart)

    def _in_real_folder(self, path: str) -> str:
        """Spell a path by the real folder that is hidden, where links of the system lead there."""
        for folder in (self.home, *_PRIVATE):
            if is_inside(path, folder):
                return os.path.realpath(folder) + path[len(folder) :]
        return path


def _interpreters(script: str) -> Iterator[str]:
    """Yield what the first line of a script names, `env` looked through."""
    try:
        with Path(script).open("rb") as file:
            first = file.read(_SHEBANG_BYTES_MAX).split(b"\n", 1)[0]
    except OSError:
        return
    words = os.fsdecode(first[2:]).split() if first.startswith(b"#!") else []
    if words and words[0].endswith("/env"):
        folders = search_path(os.environ.get("PATH", os.defpath))
        words = [find_program(one, folders) or "" for one in words[1:] if not one.startswith("-")]
    yield from (one for one in words[:1] if one.startswith("/"))


def _base_of(environment: str) -> Iterator[str]:
    """Yield the folder of the interpreter that a virtual environment was made from."""
    with suppress(OSError, UnicodeDecodeError):
        for line in Path(environment, "pyvenv.cfg").read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition("=")
            if name.strip() == "home":
                yield value.strip()
