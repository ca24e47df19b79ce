"""From the text of a trial to a play."""

from __future__ import annotations

import ast
import functools
from typing import TYPE_CHECKING, Any

from cleveragents.hunt.prove.modules import FreshModule, shared_with
from cleveragents.hunt.prove.stage import Play

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cleveragents.hunt.trial import Trial

__all__ = ["play_of"]


class _Keeping(ast.NodeTransformer):
    """Wraps the arguments of which something may become: containers, and functions to be called."""

    def _keep(self, node: ast.expr) -> ast.expr:
        keep = ast.Name("__keep__", ast.Load())
        return ast.copy_location(ast.Call(keep, [node], []), node)

    visit_List = visit_Dict = visit_Set = _keep  # noqa: N815  # the names that `ast` calls

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        """Wrap a callback, but not what it makes: that is no argument."""
        told = ast.Name("__told__", ast.Load())
        return ast.copy_location(ast.Call(told, [node], []), node)


class _Act:
    """One call: an expression, run with the subject in scope."""

    def __init__(self, text: str, scope: Callable[[], dict[str, Any]]) -> None:
        tree = _Keeping().visit(ast.parse(text, "<hunt>", "eval"))
        self._code = compile(ast.fix_missing_locations(tree), "<hunt>", "eval")
        self._scope = scope
        self._kept: list[object] = []
        self._called_back = False

    def __call__(self, subject: Any) -> Any:
        self._kept = []
        self._called_back = False
        ours = {"subject": subject, "__keep__": self._keep, "__told__": self._told}
        names = {**self._scope(), **ours}
        return eval(self._code, names)  # noqa: S307  # to run the user's code is the point

    def kept(self) -> list[object]:
        return self._kept

    def called_back(self) -> bool:
        return self._called_back

    def _told(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def told(*args: Any, **kwargs: Any) -> Any:
            self._called_back = True
            return function(*args, **kwargs)

        return told

    def _keep(self, value: object) -> object:
        self._kept.append(value)
        return value


def play_of(trial: Trial) -> Play:
    """Compile a trial; nothing of it runs yet."""
    fresh = None if trial.fresh_module is None else FreshModule(trial.fresh_module)
    imports = compile("\n".join(trial.imports), "<hunt>", "exec")
    scope: dict[str, Any] = {}
    build = _Act(trial.subject, lambda: scope)
    setup = [_Act(text, lambda: scope) for text in trial.setup]

    def make() -> Any:
        if fresh is not None:
            fresh.load()
        if fresh is not None or not scope:
            scope.clear()
            exec(imports, scope)  # noqa: S102  # to run the user's code is the point
        subject = build(None)
        for act in setup:
            act(subject)
        return subject

    def roots(subject: Any) -> Mapping[str, object]:
        return shared_with(subject, () if trial.fresh_module is None else (trial.fresh_module,))

    return Play(make, tuple(_Act(text, lambda: scope) for text in trial.calls), roots)
