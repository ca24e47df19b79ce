"""Runs plans, and goes on with those that were stopped, failed, or died with their process."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from cleveragents.application.run_journal import PlanState, plan_of, source_of
from cleveragents.application.services.plan_progress import PlanProgress
from cleveragents.application.services.plan_run import PlanRun
from cleveragents.application.services.run_options import RunOptions
from cleveragents.application.services.run_result import RunResult
from cleveragents.domain.error_record import Action, ErrorCategory
from cleveragents.domain.errors import PlanError
from cleveragents.domain.event import tell

if TYPE_CHECKING:
    from cleveragents.application.run_journal import PlanRecord, RunBook, RunJournal
    from cleveragents.application.services.attempt_order import Crew
    from cleveragents.domain.plan import Plan


class PlanRunner:
    """Runs any number of plans, each in the thread that asks for it; share it between threads.

    What was finished is never run again, by whichever process. What was in flight when a process
    died is run once more, and nothing that it changed is merged unless its result was kept.
    """

    def __init__(self, crew: Crew, journal: RunJournal, options: RunOptions | None = None) -> None:
        self._crew = crew
        self._journal = journal
        self._options = options or RunOptions()

    def add(
        self,
        plan: Plan,
        plan_id: str | None = None,
        *,
        session: str | None = None,
        folder: str | None = None,
        state: PlanState = PlanState.READY,
    ) -> str:
        """Keep a plan, to be run later; return its id."""
        chosen = plan_id or f"p-{uuid.uuid4().hex[:8]}"
        self._journal.add(chosen, source_of(plan), session=session, folder=folder, state=state)
        return chosen

    def run(
        self, plan: Plan, plan_id: str | None = None, *, session: str | None = None
    ) -> RunResult:
        """Keep a plan and run it to its end."""
        return self._run(self.add(plan, plan_id, session=session), plan)

    def resume(self, plan_id: str) -> RunResult:
        """Go on with a plan where it stands; one that is finished is told as it is.

        Nodes that failed are tried again: whoever resumes wants that.
        """
        return self._run(plan_id, None)

    def _run(self, plan_id: str, plan: Plan | None) -> RunResult:
        known = self._journal.get(plan_id)
        if known.state.is_finished:
            return self._told(known)
        plan = plan or plan_of(known.source)
        if known.state is PlanState.READY:
            # Before anybody may run it: from then on a budget is only changed on purpose.
            self._crew.purses.set_budget(plan_id, plan)
        if plan.runs_commands:
            self._crew.workbench.check_commands()
        if plan.may_touch_files:
            # Now, and not at the first look at a file: what the user edits meanwhile is the user's.
            self._crew.workbench.begin(plan_id)
        run = PlanRun(self._crew, self._options)
        book = self._journal.take(plan_id, run.hear)
        try:
            if book.plan.digest != known.digest:
                plan = plan_of(book.plan.source)
            if book.plan.state is not PlanState.READY:
                self._clean_up(book)
            tell(self._options.on_open, run)
            return run.go(book, plan)
        finally:
            book.close()

    def _clean_up(self, book: RunBook) -> None:
        """Bring what earlier runs left behind into order."""
        kept = {one.changeset for one in book.nodes if one.changeset is not None}
        self._crew.workbench.salvage(book.plan.id, kept)
        errors = self._crew.errors
        for one in book.interrupted:
            errors.record_error(
                book.plan.id,
                PlanError(
                    f"Attempt {one.attempt} of node `{one.id}` ended with its process",
                    code="CA6204",
                ),
                node=one.id,
                actor=one.actor,
                attempt=one.attempt,
                category=ErrorCategory.STALLED,
            )
        # These, and what a run recorded and died before it had decided. The ladder is not asked:
        # whoever resumes has decided to try again.
        for record in errors.history(book.plan.id).undecided:
            errors.keep_decision(record, Action.RETRY, "the plan was resumed")

    def _told(self, known: PlanRecord) -> RunResult:
        nodes = {one.id: one for one in self._journal.nodes(known.id)}
        progress = PlanProgress(plan_of(known.source), nodes)
        return RunResult(
            plan_id=known.id, state=known.state, exit_code=0, nodes=nodes, outputs=progress.outputs
        )
