"""An actor that runs a program: a test, a script, or an agent of somebody else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from cleveragents.actors.captured_output import captured
from cleveragents.actors.command_failure import raise_if_ended_early, raise_if_failed
from cleveragents.actors.json_value import as_json
from cleveragents.actors.line_log import LineLog
from cleveragents.actors.usage_report import Bill, bills_in
from cleveragents.application.attempts import ActorResult
from cleveragents.application.services.run_result import ANEW
from cleveragents.domain.command import Command, CommandLimits
from cleveragents.domain.errors import SetupError
from cleveragents.domain.money import Money
from cleveragents.domain.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cleveragents.application.attempts import AttemptContext
    from cleveragents.domain.plan_actors import CommandActor as CommandValue

#: Says what a usage costs, or raises `SetupError` when the price of the model is not known.
Pricing: TypeAlias = "Callable[[str, Usage], Money]"

#: Linux takes no variable above 128 KiB, and no program whose variables are above its stack.
_VARIABLE_BYTES_MAX: Final = 64_000


@dataclass(frozen=True, slots=True)
class CommandActor:
    """Runs a command in the sandbox; its printed output is the node's output.

    Inputs come as JSON on standard input, which is empty when there are none, and in variables.
    What an agent tells about its cost is recorded, however the command ended.
    """

    value: CommandValue
    price: Pricing | None = None

    def run(self, attempt: AttemptContext) -> ActorResult:
        """Run the command; raise CA5201 when it fails, CA5005 at a limit, `Stopped` if asked to."""
        command = self._command(attempt)
        log = LineLog(attempt.log)
        finished = attempt.bench.run(command, stop=attempt.stop, on_output=log.take)
        log.end()
        facts = self._record(attempt, bills_in(finished.stdout))
        more_time = f"Raise `timeout_s` of node `{attempt.node.name}`: {ANEW}"
        raise_if_ended_early(command, finished, attempt.stop, more_time=more_time)
        raise_if_failed(command, finished)
        output = captured(finished.stdout, attempt.node.outputs, of=f"`{command.argv[0]}`")
        return ActorResult(output, facts={"duration_s": round(finished.duration_s, 3), **facts})

    def _command(self, attempt: AttemptContext) -> Command:
        words = self.value.command
        node = attempt.node
        limits = CommandLimits() if node.timeout_s is None else CommandLimits(node.timeout_s)
        return Command(
            ("sh", "-c", words) if isinstance(words, str) else words,
            stdin=as_json(attempt.inputs).encode("ascii") if attempt.inputs else b"",
            env={**variables(attempt), **node.env},
            folder=node.folder,
            limits=limits,
            network=bool(node.network),
        )

    def _record(self, attempt: AttemptContext, bills: Iterable[Bill]) -> dict[str, Any]:
        """Put what is known into the books; what is not known is told, and is never 0."""
        known, unpriced = Money(0), []
        for bill in bills:
            cost = self._cost(bill)
            if cost is not None:
                attempt.purse.record(cost, usage=bill.usage, model=bill.model)
                known += cost
            else:
                used = bill.usage or Usage()
                tokens = used.input_tokens + used.output_tokens
                unpriced.append(f"{tokens} tokens of {bill.model or 'a model without a name'}")
                attempt.log(f"{unpriced[-1]} were used; their price is not known, nor in the books")
        told = {"cost": str(known), "unpriced": tuple(unpriced)}
        return {name: fact for name, fact in told.items() if fact and fact != str(Money(0))}

    def _cost(self, bill: Bill) -> Money | None:
        if bill.cost is not None or self.price is None or not (bill.model and bill.usage):
            return bill.cost
        try:
            return self.price(bill.model, bill.usage)
        except SetupError:
            return None


def variables(attempt: AttemptContext) -> dict[str, str]:
    """Return what a command is told by variables; what is too long for one is cut or left out."""
    told = {
        "PLAN": attempt.plan_id,
        "NODE": attempt.node.name,
        "INSTANCE": attempt.instance,
        "ATTEMPT": str(attempt.attempt),
        "GOAL": attempt.goal,
        "FEEDBACK": "\n\n".join(attempt.feedback),
    }
    inputs = as_json(attempt.inputs)
    if len(inputs) <= _VARIABLE_BYTES_MAX:
        # Half of a JSON value is none; whoever needs more reads it from standard input.
        told["INPUTS"] = inputs
    return {f"CLEVERAGENTS_{name}": _last_of(text) for name, text in told.items()}


def _last_of(text: str) -> str:
    """Return what a variable can hold of a text: its end, where the newest stands."""
    data = text.replace("\0", "?").encode("utf-8", "replace")
    return data[-_VARIABLE_BYTES_MAX:].decode("utf-8", "ignore")
