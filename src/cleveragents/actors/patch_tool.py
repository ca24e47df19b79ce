"""The tool that applies a unified diff to the files of the attempt, all of it or nothing."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from cleveragents.actors.allowed_writes import refuse_forbidden
from cleveragents.actors.exact_edit import misfit
from cleveragents.actors.file_tools import TEXT_CHARS_MAX
from cleveragents.actors.patch import FilePatch, patched, read_patch
from cleveragents.actors.tool import Parameter, Permission, Tool
from cleveragents.domain.errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Callable

    from cleveragents.actors.tool import ToolCall
    from cleveragents.application.attempts import Files
    from cleveragents.domain.changeset import FileMode


@dataclass(frozen=True, slots=True)
class _File:
    """A file after the moves and after the patch; None is no file."""

    before: bytes | None
    after: bytes | None
    mode_before: FileMode | None = None
    mode: FileMode | None = None

    def reversed(self) -> _File:
        """Return the way back."""
        return _File(self.after, self.before, self.mode, self.mode_before)


_NONE: Final = _File(None, None)


class _Plan:
    """What becomes of the files: moves first, which keep what git does not tell, then writes."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self.moves: list[tuple[str, str]] = []
        self.writes: dict[str, _File] = {}

    def add(self, patch: FilePatch) -> None:
        """Work out one patch, over what the patches before it did; nothing is written yet."""
        source, there = patch.old, self._now(patch.path)
        if source != patch.path and there.after is not None:
            what = "makes" if source is None else "moves a file to"
            raise misfit(patch.path, f"The patch {what} {patch.path!r}, which is there already")
        old = there if source in {None, patch.path} else self._now(source or "")
        if source is not None and old.after is None:
            raise misfit(source, f"The patch changes {source!r}, which is not there")
        content = patched(patch, old.after or b"")
        if patch.new is None and content:
            raise misfit(patch.path, f"The patch deletes {patch.path!r}, and leaves lines in it")
        if source is not None and source != patch.path:
            there = self._move(source, patch.path, old, there)
        self.writes[patch.path] = replace(
            there,
            after=None if patch.new is None else content,
            mode=patch.mode or there.mode,
            mode_before=patch.mode_before or there.mode_before,
        )

    def put(self, call_id: str) -> None:
        """Do it all; if something cannot be done, take back what was."""
        done: list[Callable[[], object]] = []
        try:
            for old, new in self.moves:
                done.append(partial(self._files.rename, new, old, tool_call=call_id))
                self._files.rename(old, new, tool_call=call_id)
            for path, file in self.writes.items():
                done.append(partial(self._write, path, file.reversed(), call_id))
                self._write(path, file, call_id)
        except BaseException:
            for take_back in reversed(done):
                # What cannot be taken back was never done: it is the step that failed.
                with suppress(SandboxError):
                    take_back()
            raise

    def _move(self, source: str, target: str, old: _File, there: _File) -> _File:
        """Take a file away from its path; return what is then at the other one."""
        if old.before is None or there.before is not None:
            # Not on the disk yet, or in the way of another one that goes: written anew.
            self.writes[source] = replace(old, after=None)
            return there
        self.moves.append((source, target))
        self.writes[source] = _NONE
        return replace(old, after=old.before)

    def _now(self, path: str) -> _File:
        known = self.writes.get(path)
        if known is not None:
            return known
        try:
            data = self._files.read(path)
        except SandboxError as error:
            if not isinstance(error.__cause__, FileNotFoundError | NotADirectoryError):
                raise
            return _NONE
        return _File(data, data)

    def _write(self, path: str, file: _File, call_id: str) -> None:
        if file.after is None:
            if file.before is not None:
                self._files.remove(path, tool_call=call_id)
        elif file.after != file.before or file.mode != file.mode_before:
            self._files.write(path, file.after, file.mode, tool_call=call_id)


def _apply(call: ToolCall) -> str:
    plan = _Plan(call.attempt.files)
    for patch in read_patch(call["patch"]):
        plan.add(patch)
    refuse_forbidden(call, *plan.writes)
    call.stop.raise_if_stopped()
    plan.put(call.id)
    told = [f"moved `{old}` to `{new}`" for old, new in plan.moves]
    told += [f"{_verb(file)} `{path}`" for path, file in plan.writes.items() if file != _NONE]
    return f"Applied the patch: {', '.join(told)}"


def _verb(file: _File) -> str:
    if file.before is None:
        return "made"
    return "deleted" if file.after is None else "changed"


APPLY_PATCH: Final = Tool(
    name="apply_patch",
    description=(
        "Apply a unified diff, as `git diff` prints it, to any number of files: all of it, or"
        " nothing when a part does not fit. Line numbers may be off; lines must match exactly."
    ),
    run=_apply,
    parameters=(Parameter(name="patch", about="the diff", least=1, most=TEXT_CHARS_MAX),),
    permission=Permission.WRITE,
)
