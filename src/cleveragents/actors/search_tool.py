"""The tool that searches the text of all files: by ripgrep where it is installed, else by Python.

Both run as commands in the sandbox, so a pattern that never ends is ended by its time limit.
"""

from __future__ import annotations

import posixpath
import shutil
import sys
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cleveragents.actors.command_failure import raise_if_ended_early, tail_of
from cleveragents.actors.file_tools import inner_path
from cleveragents.actors.json_value import as_json
from cleveragents.actors.tool import Parameter, Tool
from cleveragents.domain.command import Command, CommandLimits
from cleveragents.domain.errors import RequestError
from cleveragents.domain.paths import check_inside_path

if TYPE_CHECKING:
    from cleveragents.actors.tool import ToolCall

MATCHES_MAX: Final = 500
_LINE_CHARS_MAX: Final = 300
_TIME_S: Final = 30.0
_LIMITS: Final = CommandLimits(_TIME_S, output_bytes_max=2_000_000)
_RIPGREP: Final = (
    *("rg", "--no-config", "--no-heading", "--no-ignore", "--hidden", "--color=never"),
    *("--line-number", "--with-filename", "--null", "--sort=path", "--glob=!.git"),
    *("--max-columns=1000", "--max-columns-preview"),
)
_NARROWER: Final = "make the pattern narrower"


@dataclass(frozen=True, slots=True)
class SearchText:
    """Searches with the program that is there; `ripgrep` false takes Python in any case."""

    ripgrep: bool | None = None

    def __call__(self, call: ToolCall) -> str:
        """Return the matching lines, each with its path and number."""
        folder = posixpath.normpath(call["folder"])
        if folder != ".":
            check_inside_path(folder)
        command = self._command(call, folder)
        finished = call.attempt.bench.run(command, stop=call.stop)
        if finished.stopped != "output":
            raise_if_ended_early(command, finished, call.stop)
        if finished.stopped is None and finished.exit_code not in {0, 1}:
            raise RequestError(
                f"The search cannot be done: {tail_of(finished)}",
                code="CA5203",
                facts={"tool": "search_text", "folder": folder},
                hint="Escape the characters that mean something, such as `\\(`",
            )
        return _shown(finished.stdout, folder, call["files"])

    def _command(self, call: ToolCall, folder: str) -> Command:
        with_ripgrep = shutil.which("rg") is not None if self.ripgrep is None else self.ripgrep
        if with_ripgrep:
            case = ("--ignore-case",) if call["ignore_case"] else ()
            words = (*_RIPGREP, *case, f"--regexp={call['pattern']}", "--", folder)
            return Command(words, limits=_LIMITS)
        script = (Path(__file__).parent / "search_script.py").read_text(encoding="utf-8")
        names = ("pattern", "ignore_case")
        asked = {name: call[name] for name in names} | {
            "folder": folder,
            "matches_max": 10 * MATCHES_MAX,
        }
        words = (sys.executable, "-I", "-c", f"{script}\nsys.exit(main())\n")
        return Command(words, stdin=as_json(asked).encode("ascii"), limits=_LIMITS)


def _shown(printed: bytes, folder: str, files: str | None) -> str:
    lines: list[str] = []
    for match in printed.decode("utf-8", "replace").split("\n"):
        path, separator, rest = match.partition("\0")
        path = path.removeprefix("./")
        inside = inner_path(path, folder)
        if not separator or (files and not fnmatchcase(inside or path, files)):
            continue
        if len(lines) == MATCHES_MAX:
            return "\n".join((*lines, f"[more than {MATCHES_MAX} matches: {_NARROWER}]"))
        rest = rest.rstrip("\r")
        cut = "… [line cut]" if len(rest) > _LINE_CHARS_MAX else ""
        lines.append(f"{path}:{rest[:_LINE_CHARS_MAX]}{cut}")
    if len(printed) > _LIMITS.output_bytes_max:
        lines.append(f"[some matches are left out: {_NARROWER}]")
    return "\n".join(lines) or "[no match]"


def search_text(*, ripgrep: bool | None = None) -> Tool:
    """Return the tool; by default ripgrep is taken if it is installed."""
    return Tool(
        name="search_text",
        description=(
            "Search the lines of all text files by a regular expression; each match is shown as"
            " `path:number:line`."
        ),
        run=SearchText(ripgrep),
        parameters=(
            Parameter(name="pattern", about="what to search for", least=1, most=10_000),
            Parameter(
                name="folder",
                about="where to search, `.` is everywhere",
                required=False,
                default=".",
                least=1,
            ),
            Parameter(
                name="files",
                about="which files to search, such as `*.py`",
                required=False,
                least=1,
            ),
            Parameter(
                name="ignore_case",
                about="take capitals for small letters",
                kind="flag",
                required=False,
                default=False,
            ),
        ),
        timeout_s=_TIME_S + 10.0,
    )
