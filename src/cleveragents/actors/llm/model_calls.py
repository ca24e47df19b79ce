"""One question to a model: let through, admitted, asked, kept, paid; and cured where that helps.

The order makes a crash harmless. The money is promised before the request is sent; the answer is
kept with its bill and the name of the promise before anything is done with it, and paid: in the
same step, or right after it where the books are kept elsewhere. Whoever finds an answer that is
kept and not paid puts its bill in place of the promise.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from cleveragents.actors.line_log import LineLog
from cleveragents.actors.llm.admission import Admission
from cleveragents.actors.llm.talk import written
from cleveragents.application.conversations import Turn
from cleveragents.application.services.recovery_policy import LADDERS, Remedies
from cleveragents.domain.error_record import Action, ErrorCategory, gate_key
from cleveragents.domain.errors import CircuitOpen, CleverAgentsError, ProviderError
from cleveragents.domain.money import Money
from cleveragents.domain.usage import Usage
from cleveragents.providers.model_access.billing import CallFailed
from cleveragents.providers.model_access.call import Call
from cleveragents.providers.model_access.token_bound import input_bound

if TYPE_CHECKING:
    from pydantic_ai.tools import ToolDefinition

    from cleveragents.actors.llm.parts import LlmParts
    from cleveragents.actors.llm.talk import Talk
    from cleveragents.application.attempts import AttemptContext, Held
    from cleveragents.application.services.provider_gate import Pass
    from cleveragents.domain.error_record import Decision, ErrorRecord
    from cleveragents.domain.plan_actors import LlmActor as LlmValue
    from cleveragents.providers.model_access.call import Answer
    from cleveragents.providers.model_access.rate_limiter import Ticket

#: The longest answer where the plan does not say.
TOKENS_MAX: Final = 8_192

#: What is done about a failed request where it failed; all else is the runner's.
_IN_PLACE: Final = frozenset({Action.RETRY, Action.SHRINK, Action.FALL_BACK})
#: Faults that tell of a model that is not well; others tell of the question, the key or the purse.
_UNWELL: Final = frozenset(
    {ErrorCategory.CONNECT, ErrorCategory.OVERLOADED, ErrorCategory.READ_TIMEOUT}
)


@dataclass(frozen=True, slots=True)
class _Fault:
    """Why there is no answer, and what let the request through."""

    error: Exception
    sent: bool | None = None
    gate_pass: Pass | None = None
    permit: int | None = None


class LeftOpen(Exception):  # noqa: N818  # an actor makes what it raises of it
    """A question that no model answers, and a fault on record that the runner decides about."""

    def __init__(self, fault: _Fault, record: ErrorRecord) -> None:
        super().__init__(str(fault.error))
        self.error = fault.error
        self.record = record
        self.gate_pass = fault.gate_pass


@dataclass(slots=True)
class ModelCalls:
    """Asks the models of one attempt; for the one thread that runs it."""

    parts: LlmParts
    attempt: AttemptContext
    value: LlmValue
    tools: tuple[ToolDefinition, ...]
    #: The one that is asked, and those to fall back on.
    models: list[str]
    _is_troubled: bool = field(default=False, init=False)

    def ask(self, talk: Talk) -> None:
        """Ask until there is an answer that is kept and paid; `LeftOpen` if nothing here helps."""
        while True:
            self.attempt.stop.raise_if_stopped()
            model = self.models[0]
            fault = self._fault_of(talk, model)
            if fault is None:
                self._succeeded(model)
                return
            self._cure(self._decided(fault, model, talk), talk)

    # -- asking ----------------------------------------------------------------------------

    def _fault_of(self, talk: Talk, model: str) -> _Fault | None:
        """Ask one model once, in its turn; return why it did not answer, if it did not."""
        call = self._call(talk, model)
        bound = input_bound(call)
        stop, wait_s = self.attempt.stop, self.parts.wait_s_max
        try:
            ticket = self.parts.limiter.acquire(
                _provider(model),
                plan=self.attempt.plan_id,
                tokens=bound + call.tokens_max,
                timeout_s=wait_s,
                stop=stop,
            )
        except ProviderError as refused:
            return _Fault(refused)
        try:
            passed = self.parts.errors.gate.enter(_key(model), timeout_s=wait_s, stop=stop)
            with passed:
                permit = self._permit(model)
                try:
                    self._exchange(talk, call, bound, ticket)
                except CallFailed as failed:
                    sent = True if failed.billed != "no" else None
                    return _Fault(failed.error, sent, passed, permit)
                except BaseException:
                    self.parts.breaker.release(model, permit)
                    raise
            passed.ok()
            self.parts.breaker.record_success(model, permit)
        except ProviderError as refused:
            return _Fault(refused)
        finally:
            ticket.refund()  # only the first report counts: what was sent has told what it used
        return None

    def _permit(self, model: str) -> int:
        permit = self.parts.breaker.acquire(model)
        if permit is None:
            wait_s = self.parts.breaker.retry_after_s(model)
            raise CircuitOpen(
                f"`{model}` is paused after failures",
                facts={"name": model, "retry_after_s": wait_s},
                hint="Wait, or go on with another model",
            )
        return permit

    def _call(self, talk: Talk, model: str) -> Call:
        value = self.value
        return Call(
            model=model,
            messages=talk.messages(),
            tools=self.tools,
            tokens_max=value.tokens_max or TOKENS_MAX,
            temperature=value.temperature,
            base_url=value.base_url_of(model),
            timeout_s=value.call_timeout_s,
            weights=talk.weights,
        )

    def _exchange(self, talk: Talk, call: Call, bound: int, ticket: Ticket) -> None:
        """Promise the money, ask, keep the answer, and pay."""
        admission = Admission(self.parts.prices)
        admitted = admission.admit(
            self.attempt.purse, call, bound, may_lower=self.value.lower_tokens
        )
        with admitted.held as held:
            lines = LineLog(self.attempt.log)
            try:
                answer = self.parts.line.request(
                    call
                    if admitted.tokens_max == call.tokens_max
                    else replace(call, tokens_max=admitted.tokens_max),
                    stop=self.attempt.stop,
                    on_text=lambda text: lines.take(text.encode("utf-8", "replace")),
                )
            except CallFailed as failed:
                self._pay_for_failure(held, call.model, failed)
                ticket.settle(_tokens_of(failed, ticket))
                raise
            except CleverAgentsError:
                held.release()  # refused by us: nothing was sent
                raise
            except BaseException:
                ticket.settle(ticket.tokens)  # stopped on its way: nobody says what it used
                raise
            ticket.settle(_tokens(answer.usage, ticket))
            lines.end()
            self._kept(talk, call.model, answer, held)

    def _kept(self, talk: Talk, model: str, answer: Answer, held: Held) -> None:
        usage = answer.usage
        turn = Turn(
            number=len(talk.turns) + 1,
            attempt=self.attempt.attempt,
            model=model,
            request=written(talk.request),
            response=written(answer.response),
            usage=usage or Usage(),
            cost=Money(0) if usage is None else self.parts.prices.cost_of(model, usage),
            # Without a usage there is no bill that could be put in place of the promise.
            reservation=None if usage is None else held.id,
            dropped=talk.dropped,
        )
        try:
            self.parts.conversations.keep(talk.id, turn, None if usage is None else held)
        except BaseException:
            if usage is not None:
                held.settle(turn.cost)  # it cannot be kept, and it was billed
            raise
        finally:
            if usage is None:
                held.abandon()
        talk.heard(turn, answer.response)

    def _pay_for_failure(self, held: Held, model: str, failed: CallFailed) -> None:
        if failed.billed == "no":
            held.release()
        elif failed.billed == "known" and failed.usage_so_far is not None:
            held.settle(self.parts.prices.cost_of(model, failed.usage_so_far))
        else:
            held.abandon()

    # -- curing ----------------------------------------------------------------------------

    def _decided(self, fault: _Fault, model: str, talk: Talk) -> Decision:
        """Record a fault and decide what is done about it here; all else is left to the runner."""
        self._is_troubled = True
        errors = self.parts.errors
        record = errors.record_error(
            self.attempt.plan_id,
            fault.error,
            node=self.attempt.instance,
            attempt=self.attempt.attempt,
            provider=_provider(model),
            model=_model(model),
            sent=fault.sent,
        )
        if fault.permit is not None:
            if record.category in _UNWELL:
                self.parts.breaker.record_failure(model, fault.permit)
            else:
                self.parts.breaker.release(model, fault.permit)
        remedies = self._remedies(record, talk)
        decision = errors.recover_by(_IN_PLACE, record, remedies, gate_pass=fault.gate_pass)
        if decision is None:
            raise LeftOpen(fault, record) from None
        self._hold(record, decision)
        return decision

    def _hold(self, record: ErrorRecord, decision: Decision) -> None:
        """Let nobody ask a provider before the moment that it named."""
        wait_s = record.retry_after_s
        # Where another model is asked now, it may be one of the same provider.
        if wait_s is None or record.is_own_refusal or decision.action is not Action.RETRY:
            return
        assert record.provider is not None, "a question has a provider"
        self.parts.limiter.hold_for(record.provider, wait_s)

    def _remedies(self, record: ErrorRecord, talk: Talk) -> Remedies:
        own, category = self.attempt.node.recovery, record.category
        ladder = LADDERS[category] if own is None else own.cures.get(category, LADDERS[category])
        if record.is_own_refusal:
            # It is known to be closed for a while: another model can be asked at once.
            ladder = (Action.FALL_BACK, *(one for one in ladder if one is not Action.FALL_BACK))
        return Remedies(
            other_model=len(self.models) > 1,
            shrink=talk.can_shrink,
            cures={category: tuple(one for one in ladder if one in _IN_PLACE)},
            times_max={} if own is None else own.times_max,
        )

    def _cure(self, decision: Decision, talk: Talk) -> None:
        """Do what was decided, so that the question can be asked again."""
        match decision.action:
            case Action.RETRY:
                self.attempt.log(f"asking again in {decision.delay_s:.1f} s: {decision.reason}")
                self.parts.pause(self.attempt.stop, decision.delay_s)
            case Action.SHRINK:
                talk.shrink()
                self.attempt.log("leaving out some of what tools gave: too much was said")
            case _:
                failed = self.models.pop(0)
                self.attempt.log(f"asking `{self.models[0]}` in place of `{failed}`")

    def _succeeded(self, model: str) -> None:
        if self._is_troubled:
            self._is_troubled = False
            self.parts.errors.record_success(
                self.attempt.plan_id,
                node=self.attempt.instance,
                provider=_provider(model),
                model=_model(model),
            )


def _tokens_of(failed: CallFailed, ticket: Ticket) -> int:
    if failed.billed == "no":
        return 0  # it was a request, and no work
    return _tokens(failed.usage_so_far if failed.billed == "known" else None, ticket)


def _tokens(usage: Usage | None, ticket: Ticket) -> int:
    """Return what a call used; the estimate where nobody says."""
    return ticket.tokens if usage is None else usage.input_tokens + usage.output_tokens


def _provider(model: str) -> str:
    return model.partition(":")[0]


def _model(model: str) -> str:
    return model.partition(":")[2]


def _key(model: str) -> str:
    key = gate_key(_provider(model), _model(model))
    assert key is not None, "the name of a model has a provider"
    return key
