"""Budgets as values: who is charged (`Scopes`), how much is allowed (`Limit`), what is left."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, time, timedelta, tzinfo
from typing import Any, Final, Literal, TypeAlias, get_args

from cleveragents.domain.errors import RequestError, SetupError
from cleveragents.domain.money import PICO_PER_USD, Amount, Money, pico_of

#: What can have a budget: calendar windows, the four identities of a call, and free-form labels.
ScopeKind: TypeAlias = Literal["day", "month", "plan", "session", "actor", "model", "label"]
SCOPE_KINDS: Final[tuple[str, ...]] = get_args(ScopeKind)


def scope_key(kind: str, name: str) -> str:
    """Return the one spelling of a scope, such as `plan:p-7f3a` or `label:team=core`."""
    return f"{kind}:{name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scopes:
    """On whose account a call goes, besides the day and the month, which are always charged.

    Make one for each actor and use it for all its calls. `labels` are free-form `name=value` texts.
    """

    plan: str | None = None
    session: str | None = None
    actor: str | None = None
    model: str | None = None
    labels: tuple[str, ...] = ()
    keys: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.labels, tuple):
            raise RequestError(f"`labels` must be a tuple of texts, got {self.labels!r}")
        named = [
            ("plan", self.plan),
            ("session", self.session),
            ("actor", self.actor),
            ("model", self.model),
            *(("label", label) for label in dict.fromkeys(self.labels)),
        ]
        for kind, name in named:
            if name is not None:
                _require_name(kind, name)
        keys = tuple(scope_key(kind, name) for kind, name in named if name is not None)
        object.__setattr__(self, "keys", keys)


@dataclass(frozen=True, slots=True)
class Limit:
    """A budget of one scope, or of each scope of a kind when `name` is None.

    A hard limit refuses what could exceed it; a soft one (`hard=False`) only warns.
    Each share in `warn_at` is reported once for each scope: `0.8` is 80 % of the amount.
    """

    kind: ScopeKind
    amount: Money
    name: str | None = None
    hard: bool = True
    warn_at: tuple[float, ...] = ()

    def __init__(
        self,
        kind: ScopeKind,
        amount: Amount,
        *,
        name: str | None = None,
        hard: bool = True,
        warn_at: tuple[float, ...] | None = None,
    ) -> None:
        if kind not in SCOPE_KINDS:
            raise RequestError(f"A limit's kind must be one of {SCOPE_KINDS}, got {kind!r}")
        if name is not None:
            _require_name(kind, name)
        if warn_at is not None and not isinstance(warn_at, tuple):
            raise RequestError(f"`warn_at` must be a tuple of shares, got {warn_at!r}")
        shares = tuple(sorted(set(() if hard else (0.8, 1.0)) if warn_at is None else set(warn_at)))
        if any(not 0 < share <= 1 for share in shares):
            raise RequestError(f"`warn_at` must be shares above 0 up to 1, got {warn_at!r}")
        for attribute, value in (
            ("kind", kind),
            ("amount", Money.of(amount)),
            ("name", name),
            ("hard", hard),
            ("warn_at", shares),
        ):
            object.__setattr__(self, attribute, value)

    def covers(self, key: str) -> bool:
        """Say whether the limit is about the scope with this key."""
        kind, _, name = key.partition(":")
        return kind == self.kind and self.name in {None, name}

    def thresholds(self) -> tuple[tuple[int, float], ...]:
        """Return each warning's amount in pico-dollars with its share, rising."""
        return tuple(
            (-(-self.amount.pico * pico_of(share) // PICO_PER_USD), share) for share in self.warn_at
        )


@dataclass(frozen=True, slots=True)
class Balance:
    """What one scope has spent and promised, at one moment."""

    kind: str
    name: str
    spent: Money
    promised: Money
    limit: Money | None

    @property
    def remaining(self) -> Money | None:
        """What may still be promised; negative after a bill above its reservation."""
        return None if self.limit is None else self.limit - self.spent - self.promised


@dataclass(frozen=True, slots=True)
class CalendarDay:
    """One day of the calendar in a zone, from its first second up to the next day's."""

    day: str
    month: str
    starts_at: float
    ends_at: float

    @classmethod
    def at(cls, moment_s: float, zone: tzinfo) -> CalendarDay:
        """Return the day that holds a moment; days with a clock change are 23 or 25 hours."""
        date = datetime.fromtimestamp(moment_s, zone).date()
        midnights = (
            datetime.combine(date + timedelta(days=days), time.min, zone).timestamp()
            for days in (0, 1)
        )
        return cls(date.isoformat(), f"{date:%Y-%m}", *midnights)


def known_kind(kind: str) -> str:
    """Return the kind of a scope, or refuse what is none."""
    if kind not in SCOPE_KINDS:
        raise RequestError(f"A kind of scope must be one of {SCOPE_KINDS}, got {kind!r}")
    return kind


def positive_s(name: str, seconds: Any) -> float:
    """Return a number of seconds above 0, or refuse it with the name of its option."""
    if not isinstance(seconds, int | float) or not seconds > 0:
        raise RequestError(f"`{name}` must be a number of seconds above 0, got {seconds!r}")
    return float(seconds)


def zone_of(zone: str | tzinfo) -> tzinfo:
    """Return the zone whose midnight turns the day."""
    if isinstance(zone, tzinfo):
        return zone
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(zone)
    except (KeyError, ValueError, TypeError, OSError):
        raise SetupError(
            f"A zone must be a name of the time zone database, got {zone!r}",
            hint="Use a name such as 'UTC' or 'Europe/Berlin'",
        ) from None


def _require_name(kind: str, name: object) -> None:
    if not isinstance(name, str) or not name.strip():
        raise RequestError(f"The name of a {kind} must be text that is not blank, got {name!r}")
