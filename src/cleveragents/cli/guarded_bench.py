"""A bench that runs one program as its user would: with input, variables and live output."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from cleveragents.cli import output

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cleveragents.application.attempts import Bench, Files
    from cleveragents.domain.command import Command, Finished
    from cleveragents.domain.stop_signal import StopSignal


@dataclass(frozen=True, slots=True)
class GuardedBench:
    """Hands a program what only this process knows: neither input nor variables are kept."""

    inner: Bench
    stdin: bytes = field(repr=False)
    env: Mapping[str, str] = field(repr=False)
    #: Without it, nobody sees what the program prints.
    is_live: bool

    @property
    def files(self) -> Files:
        """The files of the attempt."""
        return self.inner.files

    def run(
        self,
        command: Command,
        *,
        stop: StopSignal | None = None,
        on_output: Callable[[bytes], object] | None = None,
    ) -> Finished:
        """Run a command, and show what it prints, both streams as they come."""

        def show(data: bytes) -> None:
            # Whoever read it may go; the program goes on.
            with suppress(output.ReaderGone):
                if self.is_live:
                    output.raw(data)
            if on_output is not None:
                on_output(data)

        given = replace(command, stdin=self.stdin, env={**command.env, **self.env})
        return self.inner.run(given, stop=stop, on_output=show)

    def changed(self) -> Mapping[str, bytes | None]:
        """Return what differs here from the user's tree."""
        return self.inner.changed()

    def seal(self) -> str | None:
        """Put what was changed into the store."""
        return self.inner.seal()

    def close(self) -> None:
        """Give the sandbox back."""
        self.inner.close()
