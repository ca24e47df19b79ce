"""Two first errors of a plan make two histories; the error in the first of them is gone."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class ErrorRecord:
    plan_id: str
    message: str
    kind: str = "Exception"


@dataclass
class ErrorHistory:
    plan_id: str
    _records: list[ErrorRecord] = field(default_factory=list)

    def add(self, record: ErrorRecord) -> None:
        self._records.append(record)

    @property
    def records(self) -> tuple[ErrorRecord, ...]:
        return tuple(self._records)


class ErrorRecoveryService:
    """Records errors per plan and decides how to recover. A singleton of the container."""

    def __init__(self, max_retries: int = 3) -> None:
        self.max_retries = max_retries
        self._histories: dict[str, ErrorHistory] = {}

    def _get_or_create_history(self, plan_id: str) -> ErrorHistory:
        if plan_id not in self._histories:
            self._histories[plan_id] = ErrorHistory(plan_id=plan_id)
        return self._histories[plan_id]

    def record_error(self, plan_id: str, message: str) -> ErrorRecord:
        history = self._get_or_create_history(plan_id)
        record = ErrorRecord(plan_id, message)
        history.add(record)
        return record

    def error_count(self, plan_id: str) -> int:
        history = self._histories.get(plan_id)
        return 0 if history is None else len(history.records)

    def should_retry(self, plan_id: str) -> bool:
        return self.error_count(plan_id) < self.max_retries
