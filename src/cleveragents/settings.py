"""Settings: frozen, named with their units, refused at birth.

A flag wins over the environment, the environment over the file, the file over the default.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from cleveragents.domain.budget import zone_of
from cleveragents.domain.errors import CleverAgentsError, RequestError, SetupError
from cleveragents.domain.money import Money
from cleveragents.providers.model_access.names import PROVIDERS
from cleveragents.providers.model_access.rate_bucket import RateLimits
from cleveragents.providers.pricing import SETTINGS_FILE, SETTINGS_VARIABLE, Price

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

__all__ = ["ENVIRONMENT_PREFIX", "SETTINGS_FILE", "Settings", "load", "root_of", "store_path"]

T = TypeVar("T", Price, RateLimits)

ENVIRONMENT_PREFIX: Final = "CLEVERAGENTS_"


def _money(value: Any) -> Money | None:
    try:
        return None if value is None else Money.of(value)
    except RequestError:
        raise ValueError("must be an amount of USD from 0 to 1,000,000") from None


def _whole(lowest: int, highest: int) -> Callable[[Any], int]:
    def check(value: Any) -> int:
        number = _number(value)
        if number != int(number) or not lowest <= number <= highest:
            raise ValueError(f"must be a whole number from {lowest} to {highest}")
        return int(number)

    return check


def _seconds(value: Any) -> float:
    seconds = _number(value)
    if seconds <= 0:
        raise ValueError("must be a number of seconds above 0")
    return seconds


def _number(value: Any) -> float:
    try:
        number = float("nan" if isinstance(value, bool) else value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError("must be a number")
    return number


def _zone(value: Any) -> str:
    try:
        zone_of(value)
    except SetupError:
        raise ValueError("must be a name of the time zone database") from None
    return str(value)


def _file(value: Any) -> Path:
    try:
        path = Path(value).expanduser()
    except (TypeError, RuntimeError):  # no text, or `~` of a user without a home
        path = Path()
    if path.name.strip() in {"", ".."} or "\0" in str(path):
        raise ValueError("must be the path of a file")
    return path


def _folder_or(*words: str) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        if value in words:
            return str(value)
        try:
            path = Path(value).expanduser()
        except (TypeError, RuntimeError):  # no text, or `~` of a user without a home
            path = Path()
        # A relative one would mean another folder in each folder that a command is run in.
        if not path.is_absolute() or "\0" in str(path):
            raise ValueError(f"must be {', '.join(words)} or the absolute path of a folder")
        return str(path)

    return check


def _one_of(*words: str) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        if value not in words:
            raise ValueError(f"must be one of {', '.join(words)}")
        return str(value)

    return check


def _each(
    kind: type[T], example: str, names: Collection[str] | None = None
) -> Callable[[Any], tuple[tuple[str, T], ...]]:
    """Check tables by name; the result is made of pairs, so that it is frozen too."""
    known = ", ".join(one.name for one in fields(kind))

    def made(name: str, table: Any) -> T:
        if names is not None and name not in names:
            raise ValueError(f"must be of {', '.join(names)}")
        try:
            return table if isinstance(table, kind) else kind(**table)
        except TypeError:
            raise ValueError(f"must be like `{example}`; a table may have {known}") from None
        except CleverAgentsError as error:
            raise ValueError(f"must be like `{example}`; {error.message}") from None

    return lambda value: tuple((name, made(name, one)) for name, one in _tables(value, example))


def _tables(value: Any, example: str) -> Iterable[tuple[str, Any]]:
    try:
        if isinstance(value, str):  # of the environment
            import tomllib

            value = tomllib.loads(f"value = {value}")["value"]
        return dict(value).items()
    except (TypeError, ValueError):  # also what is no TOML
        raise ValueError(f"must be like `{example}`") from None


def _setting(default: Any, check: Callable[[Any], Any], about: str) -> Any:
    return field(default=default, metadata={"check": check, "about": about})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a user may set; every value is checked, whoever gave it."""

    daily_budget_usd: Money | None = _setting(
        None, _money, "hard limit of a day's spending, in USD"
    )
    monthly_budget_usd: Money | None = _setting(
        None, _money, "hard limit of a month's spending, in USD"
    )
    zone: str = _setting("UTC", _zone, "time zone whose midnight turns the day")
    reservation_ttl_s: float = _setting(
        3600.0, _seconds, "how long a promise of money waits for its bill"
    )
    breaker_failures_max: int = _setting(
        3, _whole(1, 1000), "failures in a row that pause a strategy"
    )
    breaker_pause_s: float = _setting(
        30.0, _seconds, "first pause; it doubles with each failed round"
    )
    breaker_pause_s_max: float = _setting(600.0, _seconds, "longest pause")
    context_workers_max: int = _setting(8, _whole(1, 64), "strategies that run at once")
    context_timeout_s: float = _setting(5.0, _seconds, "time limit of one strategy")
    context_deadline_s: float = _setting(10.0, _seconds, "time limit of one request for context")
    context_tokens_max: int = _setting(8000, _whole(1, 2_000_000), "tokens of context for an actor")
    context_index_folder: str = _setting(
        "auto",
        _folder_or("auto", "off"),
        "where the code index is kept: auto (your cache folder), off, or a folder",
    )
    context_embeddings: str = _setting(
        "off",
        _folder_or("off"),
        "folder of a model2vec model that finds code by its meaning, or off",
    )
    context_token_count: str = _setting(
        "auto",
        _one_of("auto", "exact", "bytes"),
        "how tokens of context are counted: auto (exact where it is installed), exact or bytes",
    )
    error_records_kept_max: int = _setting(
        1000, _whole(1, 1_000_000), "errors kept in full for each plan; all are counted"
    )
    sandbox_kind: str = _setting(
        "auto",
        _one_of("auto", "overlay", "worktree", "copy"),
        "how attempts are kept apart: auto, overlay, worktree or copy",
    )
    confinement: str = _setting(
        "auto",
        _one_of("auto", "required", "off"),
        "whether commands are confined: auto, required or off",
    )
    store: Path = _setting(
        Path(".cleveragents/state.db"),
        _file,
        "file of the durable store; a relative path starts at the root of the repository",
    )
    prices: tuple[tuple[str, Price], ...] = _setting(
        (),
        _each(Price, '{ "ollama:qwen3" = { input_mtok = 0, output_mtok = 0 } }'),
        "own prices of models, in USD per million tokens",
    )
    rate_limits: tuple[tuple[str, RateLimits], ...] = _setting(
        (),
        _each(RateLimits, "{ openai = { requests_per_min = 500 } }", PROVIDERS),
        "what providers of models allow in a minute",
    )

    def __post_init__(self) -> None:
        for one in fields(self):
            given = getattr(self, one.name)
            try:
                object.__setattr__(self, one.name, one.metadata["check"](given))
            except ValueError as error:
                raise _refused(one.name, given, str(error)) from None
        if self.breaker_pause_s_max < self.breaker_pause_s:
            rule = f"must be at least `breaker_pause_s`, {self.breaker_pause_s} s"
            raise _refused("breaker_pause_s_max", self.breaker_pause_s_max, rule)


def load(
    flags: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> tuple[Settings, dict[str, str]]:
    """Return the settings in force and, for each, where it came from."""
    environment = os.environ if environment is None else environment
    known = [one.name for one in fields(Settings)]
    values: dict[str, Any] = {}
    sources = dict.fromkeys(known, "default")
    path, written = _read_file(environment, folder or _current_folder())
    for name, value in written.items():
        if name not in known:
            raise _unknown(name, path, known)
        values[name], sources[name] = value, str(path)
    for name in known:
        variable = ENVIRONMENT_PREFIX + name.upper()
        if variable in environment:
            values[name], sources[name] = environment[variable], f"environment {variable}"
        if flags is not None and flags.get(name) is not None:
            values[name], sources[name] = flags[name], "flag"
    try:
        return Settings(**values), sources
    except SetupError as error:
        error.facts["source"] = sources[error.facts["setting"]]
        raise


def store_path(settings: Settings, folder: Path | None = None) -> Path:
    """Return the durable store's file: from the root of the repository that holds the folder.

    Outside of a repository it is looked for in the folder itself (the current one by default).
    """
    return root_of(folder) / settings.store  # an absolute path stays as it is


def root_of(folder: Path | None = None) -> Path:
    """Return the root of the repository that holds a folder, or the folder if none does."""
    here = (folder or _current_folder()).absolute()
    # A folder above that may not be looked into is no repository of ours.
    return next((one for one in (here, *here.parents) if os.path.lexists(one / ".git")), here)


def _current_folder() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise SetupError(
            "The current folder was deleted", hint="Change to another folder, then try again"
        ) from None


def _read_file(environment: Mapping[str, str], folder: Path) -> tuple[Path, dict[str, Any]]:
    named = environment.get(SETTINGS_VARIABLE)
    path = Path(named) if named else folder / SETTINGS_FILE
    if not named and not path.is_file():
        return path, {}
    import tomllib

    try:
        return path, tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SetupError(
            f"The settings file `{path}` cannot be read: {error}",
            hint="Write lines such as `daily_budget_usd = 5.0`",
        ) from None


def _refused(name: str, value: Any, rule: str) -> SetupError:
    return SetupError(
        f"The setting `{name}` {rule}, got {value!r}",
        facts={"setting": name, "value": value},
        hint=f"Set `{name}` in `{SETTINGS_FILE}`, or `{ENVIRONMENT_PREFIX}{name.upper()}`",
    )


def _unknown(name: str, path: Path, known: list[str]) -> SetupError:
    import difflib

    close = difflib.get_close_matches(name, known, 1)
    return SetupError(
        f"The setting `{name}` in `{path}` is not known",
        facts={"setting": name},
        hint=f"Did you mean `{close[0]}`?" if close else "Run `cleveragents settings` to see all",
    )
