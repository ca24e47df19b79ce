"""`cleveragents context`: what the pipeline finds for a task, who found it, and why."""

from __future__ import annotations

import math
import os
import sys
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cleveragents.application.services.context_assembly import render
from cleveragents.bootstrap import Container
from cleveragents.cli import output, state
from cleveragents.cli.table import one_line, table
from cleveragents.domain.context_request import TOKENS_MAX_LIMIT, ContextRequest
from cleveragents.domain.errors import RequestError, SetupError
from cleveragents.domain.stop_signal import StopSignal
from cleveragents.domain.strategy import StrategyStatus
from cleveragents.infrastructure.stored_text import plain

if TYPE_CHECKING:
    from argparse import Namespace

    from cleveragents.application.code_index import CodeView
    from cleveragents.application.services.acms_pipeline import Context, Passage, StrategyReport
    from cleveragents.infrastructure.exact_tokens import TokenCounter

_STDIN: Final = "-"
_COUNTED: Final = {"bytes": "three bytes each"}
_HEAD: Final = ("strategy", "state", "found", "time")


def show_context(options: Namespace) -> int:
    """Print the context of a task, or only build the index anew."""
    _check_numbers(options)
    task = _task(options)
    root = state.root()
    files = tuple(_file(root, one) for one in options.file)
    with Container() as services:
        tokens_max = options.tokens or services.settings.context_tokens_max
        if options.rebuild:
            _forget(services)
        request = ContextRequest(task or "-", root, files, tokens_max)
        view = _indexed(services, request, math.inf if options.rebuild else options.wait)
        if task is None:
            assert view is not None, "only what is there is built anew"
            return _tell_index(view, as_json=options.json)
        context = services.pipeline.build(request)
        count_tokens = services.count_tokens
    if options.json:
        output.record(_record(request, context, view, count_tokens))
    else:
        _print(context, count_tokens if options.explain else None)
        _talk(request, context, view, count_tokens.name)
    return 0


# -- what was asked ------------------------------------------------------------------------


def _check_numbers(options: Namespace) -> None:
    if options.tokens is not None and not 1 <= options.tokens <= TOKENS_MAX_LIMIT:
        raise RequestError(f"`--tokens` must be 1 to {TOKENS_MAX_LIMIT:,}, got {options.tokens:,}")
    if not 0 <= options.wait < math.inf:
        raise RequestError(f"`--wait` must be 0 s or more, got {options.wait}")


def _task(options: Namespace) -> str | None:
    """Return the task; None when only the index is wanted."""
    if options.task is None and options.rebuild:
        return None
    text = sys.stdin.read() if options.task == _STDIN else options.task or ""
    if not text.strip():
        raise RequestError(
            "TASK must say what is to be done, got nothing",
            hint='Run `cleveragents context "where is the retry limit checked"`',
        )
    return plain(text)


def _file(root: Path, text: str) -> str:
    """Return the path from the root; what is typed counts from here, or else from the root."""
    for start in (Path.cwd(), root):
        path = Path(os.path.normpath(start / text))
        if path.is_file() and path.is_relative_to(root):
            return path.relative_to(root).as_posix()
    raise RequestError(
        f"`--file` must be a file of the tree, got {text!r}",
        facts={"tree": root},
        hint="Write its path from here, or from the root of the tree",
    )


# -- the index -----------------------------------------------------------------------------


def _forget(services: Container) -> None:
    from cleveragents.infrastructure.code_index.upkeep import clear

    if services.index is None:
        raise RequestError(
            "`--rebuild` needs an index, and it is switched off",
            hint="Set `context_index_folder` to `auto`",
        )
    was = clear(services.index.folder)
    output.talk(f"deleted the index of {_count(was.files, 'file')} in {was.path}")


def _indexed(services: Container, request: ContextRequest, wait_s: float) -> CodeView | None:
    """Return the view of the tree once everything is indexed, or the time is up."""
    if services.index is None:
        return None
    until_s = time.monotonic() + wait_s
    told_s = time.monotonic()
    while True:
        view = services.index.view(request, StopSignal())
        now_s = time.monotonic()
        if view.is_whole or now_s >= until_s:
            _embed(services, view, until_s - now_s)
            return view
        if now_s - told_s >= 1.0:
            told_s = now_s
            output.talk(f"the index is being built: {_progress(view)}")


def _embed(services: Container, view: CodeView, wait_s: float) -> None:
    if services.vectors is not None:
        with suppress(SetupError):  # the strategy tells it
            left = services.vectors.embed(view, StopSignal(), wait_s)
            if left:
                output.talk(f"embeddings: {_count(left, 'file')} to be done in later requests")


def _tell_index(view: CodeView, *, as_json: bool) -> int:
    if as_json:
        output.record({"kind": "index", **_index_record(view)})
    else:
        output.talk(f"the index is built: {_progress(view)}")
        _talk_notes(view)
    return 0


def _progress(view: CodeView) -> str:
    return f"{len(view.paths) - view.missing:,} of {_count(len(view.paths), 'file')}"


# -- what was found ------------------------------------------------------------------------


def _print(context: Context, explain: TokenCounter | None) -> None:
    text = _explained(context, explain) if explain else context.render().removesuffix("\n")
    if not text:
        return
    if explain or sys.stdout.isatty():
        output.data(text)
    else:
        output.raw(f"{text}\n".encode())  # exactly what a model would read


def _explained(context: Context, count_tokens: TokenCounter) -> str:
    lines = []
    for one in context.fragments:
        tokens = _count(count_tokens(render((one,))), "token")
        lines.append(f"{one_line(one.path)}:{one.start_line}-{one.end_line}  {tokens}")
        lines += [f"  {one_line(f'{who}: {why}')}" for who, why in one.origins]
    lines += [
        f"{one_line(one.path)}:{one.start_line}-{one.end_line}  one line"
        for one in context.outlines
    ]
    return "\n".join(lines)


def _talk(
    request: ContextRequest, context: Context, view: CodeView | None, counted_by: str
) -> None:
    files = len({one.path for one in context.fragments})
    if not context.fragments and not context.outlines:
        output.talk("Nothing was found")
    else:
        output.talk(
            f"context  {context.tokens:,} of {_count(request.tokens_max, 'token')}"
            f" ({_COUNTED.get(counted_by, counted_by)}):"
            f" {_count(len(context.fragments), 'place')} in {_count(files, 'file')},"
            f" {_count(len(context.outlines), 'more file')} named, {context.omitted:,} left out"
        )
    rows = [_row(report) for report in context.reports]
    output.talk(table(_HEAD, rows, right=("found", "time")))
    for report in context.reports:
        if report.status is not StrategyStatus.OK:
            output.talk(f"warning: {one_line(report.reason)}")
    if view is None:
        output.talk("the index is switched off by `context_index_folder`")
        return
    if view.missing:
        output.talk(f"the index is being built: {_progress(view)}")
    _talk_notes(view)


def _talk_notes(view: CodeView) -> None:
    for note in view.notes:
        output.talk(f"  {one_line(note)}")


def _row(report: StrategyReport) -> tuple[str, str, str, str]:
    word = report.status.replace("_", " ")
    return report.name, word, f"{len(report.fragments):,}", f"{report.elapsed_s * 1000:,.0f} ms"


def _record(
    request: ContextRequest, context: Context, view: CodeView | None, count_tokens: TokenCounter
) -> dict[str, Any]:
    return {
        "kind": "context",
        "task": request.task,
        "root": str(request.root),
        "tokens": context.tokens,
        "tokens_max": request.tokens_max,
        "tokens_counted_by": count_tokens.name,
        "text": context.render(),
        "fragments": [
            {**_fragment(one), "tokens": count_tokens(render((one,)))} for one in context.fragments
        ],
        "outlines": [asdict(one) for one in context.outlines],
        "files": list(context.files),
        "omitted": context.omitted,
        "strategies": [_report(one) for one in context.reports],
        "index": _index_record(view),
    }


def _fragment(one: Passage) -> dict[str, Any]:
    return {
        "path": one.path,
        "start_line": one.start_line,
        "end_line": one.end_line,
        "text": one.text,
        "origins": [{"strategy": who, "reason": why} for who, why in one.origins],
    }


def _report(report: StrategyReport) -> dict[str, Any]:
    return {
        "name": report.name,
        "status": str(report.status),
        "found": len(report.fragments),
        "elapsed_s": round(report.elapsed_s, 4),
        "reason": report.reason,
        "retry_after_s": report.retry_after_s,
    }


def _index_record(view: CodeView | None) -> dict[str, Any]:
    if view is None:
        return {"state": "off"}
    return {
        "state": "building" if view.missing else "built",
        "files": len(view.paths),
        "missing": view.missing,
        "notes": list(view.notes),
    }


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
