"""No request without money for the worst that it can cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from cleveragents.domain.errors import BudgetExceeded
from cleveragents.domain.money import Money

if TYPE_CHECKING:
    from cleveragents.application.attempts import Held, Purse
    from cleveragents.domain.usage import Usage

#: An answer shorter than this is of no use: better to refuse.
TOKENS_LEAST: Final = 256
#: Each refusal may come from another account, and others spend meanwhile.
_TRIES_MAX: Final = 8


class Prices(Protocol):
    """What calls cost; a model without a known price is refused with CA1004."""

    def worst_case(self, model: str, input_tokens: int, max_output_tokens: int) -> Money:
        """Return the most that a call can cost."""
        ...

    def cost_of(self, model: str, usage: Usage) -> Money:
        """Return what a call cost."""
        ...


class Request(Protocol):
    """What admission looks at in a call."""

    @property
    def model(self) -> str:
        """The name of the model."""
        ...

    @property
    def tokens_max(self) -> int:
        """How long the answer may be."""
        ...


@dataclass(frozen=True, slots=True)
class Admitted:
    """A call that may be made: what is promised to it, and how long its answer may be."""

    held: Held
    tokens_max: int


@dataclass(frozen=True, slots=True)
class Admission:
    """Admits calls: each gets its worst case promised on all scopes at once, before it is sent."""

    prices: Prices

    def admit(self, purse: Purse, call: Request, bound: int, *, may_lower: bool) -> Admitted:
        """Promise money to a call whose prompt has at most `bound` tokens.

        Where the budget has no room for the longest answer, a shorter one is asked for if that is
        allowed; what does not fit even then is refused with the refusal of the budget.
        """
        tokens = call.tokens_max
        for _ in range(_TRIES_MAX):
            worst = self.prices.worst_case(call.model, bound, tokens)
            try:
                return Admitted(purse.reserve(worst, model=call.model), tokens)
            except BudgetExceeded as refused:
                fitting = self._fitting(call.model, bound, tokens, room_in(refused))
                if not may_lower or fitting is None:
                    raise
                tokens = fitting
        worst = self.prices.worst_case(call.model, bound, tokens)
        return Admitted(purse.reserve(worst, model=call.model), tokens)

    def _fitting(self, model: str, bound: int, tokens: int, room: Money) -> int | None:
        """Return the longest answer below `tokens` whose worst case fits; None below the least."""
        low, high = TOKENS_LEAST, tokens - 1
        if high < low or self.prices.worst_case(model, bound, low) > room:
            return None
        while low < high:
            middle = (low + high + 1) // 2
            if self.prices.worst_case(model, bound, middle) > room:
                high = middle - 1
            else:
                low = middle
        return low


def room_in(refused: BudgetExceeded) -> Money:
    """Return what was left on the account that refused; nothing where it does not say."""
    limit, spent, promised = (refused.facts.get(one) for one in ("limit", "spent", "promised"))
    if isinstance(limit, Money) and isinstance(spent, Money) and isinstance(promised, Money):
        return limit - spent - promised
    return Money(0)
