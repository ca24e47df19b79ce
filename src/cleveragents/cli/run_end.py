"""How a run ended: in one line, with what failed, what is kept and how to go on."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cleveragents.actors.llm.planner import NAME as PLANNING
from cleveragents.application.run_journal import PlanState
from cleveragents.application.services.run_result import ANEW
from cleveragents.cli import output
from cleveragents.cli.cautions import Cautions
from cleveragents.cli.changes import told
from cleveragents.cli.run_lines import ending
from cleveragents.domain.conflict import ConflictState
from cleveragents.domain.error_record import Action, ErrorCategory
from cleveragents.domain.errors import ConflictError, LimitError, PlanError
from cleveragents.domain.money import Money
from cleveragents.domain.plan_graph import NodeState
from cleveragents.domain.wording import counted
from cleveragents.hunt.hunt_plan import NAME as HUNT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cleveragents.application.run_journal import NodeRecord
    from cleveragents.application.services.run_result import RunResult
    from cleveragents.cli.view_model import RunModel
    from cleveragents.domain.conflict import Conflict
    from cleveragents.workspace import PlanChanges

CONFLICTS_SHOWN_MAX: Final = 5
#: What a fault is called that has no code of its own, such as an exception of a user's function.
_NODE_FAILED: Final = "CA4301"
_UNKNOWN: Final = "CA4107"
#: Plans that we make for a goal and for a hunt: there is no file that a user could change.
_OURS: Final = frozenset({PLANNING, HUNT})
#: How the label of one node begins.
_NODE_LABEL: Final = "node="


@dataclass(frozen=True, slots=True)
class RunEnd:
    """A run that is over, with what it changed."""

    result: RunResult
    model: RunModel
    files: int
    #: Lines for each file, as `git diff --stat` shows them.
    summary: bytes
    conflicts: tuple[Conflict, ...]
    cautions: Cautions

    @classmethod
    def of(cls, result: RunResult, model: RunModel, changes: PlanChanges) -> RunEnd:
        """Look at what a run left."""
        if model.end is None:
            # It was finished before, so nothing happened now.
            model.end = str(result.state)
        try:
            found = changes.difference(result.plan_id)
            conflicts = changes.trees.conflicts(result.plan_id)
            files, summary = len(found.records()), found.summary()
            cautions = Cautions.of(changes, result.plan_id)
        except PlanError as error:
            if error.code != _UNKNOWN:
                raise
            # No node ever looked at the tree.
            files, summary, conflicts = 0, b"", ()
            cautions = Cautions(result.plan_id)
        waiting = tuple(one for one in conflicts if one.state == ConflictState.OPEN)
        return cls(result, model, files, summary, waiting, cautions)

    @property
    def exit_code(self) -> int:
        """The exit code of the run; 5 where a node says that a person is to be asked."""
        code = self.result.exit_code
        asks = any(self._asks(one) for one in self.result.nodes.values())
        return ConflictError.exit_code if code == 1 and asks else code

    def tell(self) -> None:
        """Tell it to a person."""
        output.talk(ending(self.model, self.files))
        for conflict in self.conflicts[:CONFLICTS_SHOWN_MAX]:
            output.talk(told(conflict))
        self.cautions.tell()
        if self.result.error is not None:
            output.talk("")
            output.error(self._error(), as_json=False)
        elif self.result.state is not PlanState.DONE:
            output.talk(f"\nhint: Run `{self._go_on()}` to go on")

    def record(self) -> dict[str, Any]:
        """Return it as `--json` shows it."""
        error = None if self.result.error is None else self._error().to_dict()
        return {
            "kind": "run",
            "plan": self.result.plan_id,
            "state": self.result.state,
            "exit_code": self.exit_code,
            "nodes": {str(state): count for state, count in self.model.counts().items()},
            "files": self.files,
            "spent_usd": f"{self.model.spent.usd:f}",
            "conflicts": [one.id for one in self.conflicts],
            "cautions": self.cautions.records(),
            "error": error,
        }

    def _error(self) -> PlanError:
        given = self.result.error or {}
        facts = {**(given.get("facts") or {}), "kept": self._kept()}
        return PlanError(
            str(given.get("message")),
            code=given.get("code") or _NODE_FAILED,
            facts={name: fact for name, fact in facts.items() if fact},
            hint=self._hint(),
        )

    def _kept(self) -> str:
        counts = self.model.counts()
        done = f"{counts[NodeState.DONE]} of {counted(counts.total(), 'node')}"
        return f"{done}, {counted(self.files, 'changed file')}" if self.files else done

    def _hint(self) -> str:
        """Return the one command that leads on."""
        go_on = self._go_on()
        if self.conflicts:
            return f"Decide each conflict by its command, then run `{go_on}`"
        short = [
            (one.error or {})
            for one in self.result.nodes.values()
            if _is_about(one, ErrorCategory.BUDGET)
        ]
        if short:
            return self._more(short[0])
        if self.exit_code == LimitError.exit_code:
            return f"Run `{go_on}` to go on with what is left"
        worst = self.result.nodes.get((self.result.error or {}).get("facts", {}).get("node"))
        error = (None if worst is None else worst.error) or {}
        own = error.get("hint")
        if own and error.get("category") == ErrorCategory.QUESTION:
            # Whoever goes on has answered it.
            return f"{own}: run `{go_on}`"
        if own and ANEW in own:
            or_else = "Run" if self.model.plan.name in _OURS else f"{own}; or run"
            return f"{or_else} `{go_on}` to try once more as it is"
        return f"{own or 'See to the cause'}, then run `{go_on}`"

    def _more(self, refused: Mapping[str, Any]) -> str:
        """Return what raises the budget that had no room, and goes on."""
        kind, _, name = str(refused.get("scope") or "plan").partition(":")
        if kind == "plan":
            return f"Run `{self._go_on()} --budget-usd-max {self._more_money()}`"
        if name.startswith(_NODE_LABEL):
            return f"{refused['hint']}, then run `{self._go_on()}`"
        amount = Money.of(refused["needed_usd"])
        words = ["cleveragents", "budget", "set", kind, _plain(Money(2 * amount.pico))]
        # A day and a month have one budget for all of them.
        words += [] if kind in {"day", "month"} else ["--name", name]
        return f"Run `{shlex.join(words)}`, then run `{self._go_on()}`"

    def _go_on(self) -> str:
        return shlex.join(["cleveragents", "resume", self.result.plan_id])

    def _more_money(self) -> str:
        """Return twice the budget: enough to go on, and still a limit."""
        now = self.model.budget or self.model.spent or Money.of(1)
        return _plain(Money(2 * now.pico))

    def _asks(self, one: NodeRecord) -> bool:
        """Say whether a node failed with a question, or its own `recovery` wants one asked."""
        if one.state is NodeState.FAILED and _is_about(one, ErrorCategory.QUESTION):
            return True
        recovery = next(
            (node.recovery for node in self.model.plan.nodes if node.name == one.node), None
        )
        if recovery is None or one.state is not NodeState.FAILED or one.error is None:
            return False
        cures = recovery.cures.get(ErrorCategory(one.error["category"]), ())
        return one.error.get("action") == Action.ASK and Action.ASK in cures


def _plain(amount: Money) -> str:
    return f"{amount.usd.normalize():f}"


def _is_about(one: NodeRecord, category: ErrorCategory) -> bool:
    return (one.error or {}).get("category") == category
