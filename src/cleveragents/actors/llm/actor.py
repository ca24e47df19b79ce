"""An actor that asks a model, which may use tools, until it answers without calling one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pydantic_ai.exceptions import AgentRunError, UserError

from cleveragents.actors.llm.answer import output_of, text_of
from cleveragents.actors.llm.call_failure import call_failure
from cleveragents.actors.llm.model_calls import LeftOpen, ModelCalls
from cleveragents.actors.llm.own_tools import QUESTION
from cleveragents.actors.llm.prompting import (
    Prompts,
    context_of,
    digest_of,
    feedback_text,
    system_text,
    task_text,
)
from cleveragents.actors.llm.talk import Talk
from cleveragents.actors.llm.tool_calls import ToolCalls
from cleveragents.actors.mcp.tools import with_mcp_tools
from cleveragents.application.attempts import ActorResult, Recorded
from cleveragents.application.services.attempt_recovery import FEEDBACK_MAX
from cleveragents.domain.error_record import ErrorCategory
from cleveragents.domain.errors import LimitError, PlanError
from cleveragents.domain.money import Money
from cleveragents.domain.wording import counted

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse

    from cleveragents.actors.llm.parts import LlmParts
    from cleveragents.application.attempts import AttemptContext
    from cleveragents.application.conversations import Conversation
    from cleveragents.domain.plan_actors import LlmActor as LlmValue

_SUMMARY_CHARS: Final = 200


@dataclass(frozen=True, slots=True)
class LlmActor:
    """Asks a model, does what it calls, and tells it what came of that, until it is done.

    Each answer is kept before anything is done with it, and belongs to the node: whoever works on
    the node next goes on where the conversation stands. What its calls changed is done once more
    in the new sandbox; where a file that the model saw is not what it was, it begins anew.
    """

    value: LlmValue
    parts: LlmParts
    #: How many of its models are passed over, because they could not answer.
    passed: int = 0

    @property
    def models(self) -> list[str]:
        """The models to ask, in this order."""
        return [self.value.model, *self.value.fall_back][self.passed :]

    @property
    def fall_back(self) -> LlmActor | None:
        """The same actor with the next model, if there is one."""
        return replace(self, passed=self.passed + 1) if len(self.models) > 1 else None

    def check(self) -> None:
        """Refuse what cannot be asked: without a package, a key, a known name or price, orders."""
        for model in self.models:
            self.parts.line.check(model, self.value.base_url_of(model))
            self.parts.prices.worst_case(model, 0, 1)
        system_text(Prompts(self.parts.root), self.value)

    def run(self, attempt: AttemptContext) -> ActorResult:
        """Work until the model answers without calling a tool; that answer is the output."""
        with with_mcp_tools(self.parts.tools, attempt) as service:
            return self._work(attempt, ToolCalls(service, attempt))

    def _ask(self, calls: ModelCalls, talk: Talk) -> None:
        try:
            calls.ask(talk)
        except LeftOpen as left:
            error, record = left.error, left.record
            if isinstance(error, AgentRunError | UserError | TimeoutError):
                model = calls.models[0]
                error = call_failure(error, model, self.value.base_url_of(model))
                record = replace(record, message=error.message)
            calls.attempt.hand_over(Recorded(error, record, left.gate_pass))
            raise error from None

    def _work(self, attempt: AttemptContext, tools: ToolCalls) -> ActorResult:
        talk = self._talk(attempt, tools)
        calls = ModelCalls(self.parts, attempt, self.value, tools.definitions(), self._models(talk))
        while True:
            if (last := talk.last) is not None and not last.tool_calls:
                return self._result(attempt, talk, last)
            if last is not None:
                talk.answer_calls(tools.carry_out(last.tool_calls))
            if talk.turns_since_told >= self.value.turns_max:
                raise self._out_of_turns(attempt)
            self._ask(calls, talk)

    # -- beginning, or going on ------------------------------------------------------------

    def _talk(self, attempt: AttemptContext, tools: ToolCalls) -> Talk:
        """Return the conversation of the node, with its effects in the sandbox."""
        system = system_text(Prompts(self.parts.root), self.value)
        task = task_text(attempt, self.value)
        digest = digest_of(system, task)
        kept = self.parts.conversations.open(attempt.plan_id, attempt.instance, digest)
        if kept.turns:
            talk = self._gone_on(attempt, tools, kept)
            if talk is not None:
                return talk
            self.parts.conversations.give_up(kept.id)
            kept = self.parts.conversations.open(attempt.plan_id, attempt.instance, digest)
        talk = Talk(kept)
        told = [task, context_of(attempt, self.parts.root), feedback_text(attempt.feedback)]
        talk.begin(system, "\n\n".join(one for one in told if one))
        return talk

    def _gone_on(
        self, attempt: AttemptContext, tools: ToolCalls, kept: Conversation
    ) -> Talk | None:
        """Go on with what is kept; None when the conversation must begin anew."""
        last = kept.turns[-1]
        if last.reservation is not None:
            # Whoever kept it may have died before it was paid; only the last one can be unpaid.
            attempt.purse.correct(last.reservation, last.cost)
        try:
            talk = Talk(kept)
        except ValueError:  # written by another version of pydantic-ai
            attempt.log("the conversation with the model begins anew: it cannot be read any more")
            return None
        why = tools.repeat(talk)
        if why is not None:
            attempt.log(f"the conversation with the model begins anew: {why}")
            if tools.has_repeated:
                self.parts.conversations.give_up(kept.id)
                raise _not_repeatable(attempt, why)
            return None
        attempt.log(f"going on after {counted(len(kept.turns), 'answer')} of the model")
        self._tell_news(attempt, tools, talk)
        return talk

    def _tell_news(self, attempt: AttemptContext, tools: ToolCalls, talk: Talk) -> None:
        """Tell the model what happened since its last answer."""
        if talk.open_calls:
            talk.answer_calls(tools.carry_out(talk.open_calls))
        told = [one for one in attempt.feedback if not one.startswith(QUESTION)]
        # The same failure once more is news too: the last answer did not help.
        news = tuple(
            one for at, one in enumerate(told) if talk.times_told(one) <= told[:at].count(one)
        )
        if not news and len(attempt.feedback) >= FEEDBACK_MAX:
            # Older ones are forgotten, so the count says nothing: better twice than not at all.
            news = tuple(told[-1:])
        if news:
            talk.tell(feedback_text(news))

    def _models(self, talk: Talk) -> list[str]:
        """Return the models to ask, from the one that answered last."""
        models = self.models
        last = talk.turns[-1].model if talk.turns else None
        return models[models.index(last) :] if last in models else models

    # -- ending ----------------------------------------------------------------------------

    def _result(self, attempt: AttemptContext, talk: Talk, last: ModelResponse) -> ActorResult:
        output = output_of(last, attempt.node.outputs)
        turns = talk.turns
        return ActorResult(
            output,
            summary=text_of(last).partition("\n")[0][:_SUMMARY_CHARS],
            facts={
                "model": turns[-1].model,
                "turns": len(turns),
                "cost": Money(sum(turn.cost.pico for turn in turns)),
                "input_tokens": sum(turn.usage.input_tokens for turn in turns),
                "output_tokens": sum(turn.usage.output_tokens for turn in turns),
            },
        )

    def _out_of_turns(self, attempt: AttemptContext) -> LimitError:
        turns_max = self.value.turns_max
        return LimitError(
            f"The model of node `{attempt.instance}` was not done after {turns_max} answers",
            code="CA2202",
            # Whether it is worth more of them is for a person to say.
            facts={"turns_max": turns_max, "category": ErrorCategory.QUESTION},
            hint="Give the model as many answers again",
        )


def _not_repeatable(attempt: AttemptContext, why: str) -> PlanError:
    return PlanError(
        f"What the model of node `{attempt.instance}` did before cannot be done again: {why}",
        code="CA6205",
        # A further attempt begins anew, in a sandbox where nothing is done half.
        facts={"node": attempt.instance, "category": ErrorCategory.CONFLICT},
    )
