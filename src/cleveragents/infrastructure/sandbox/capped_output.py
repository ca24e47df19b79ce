"""What a program wrote, kept up to a limit: the beginning and the end."""

from __future__ import annotations

__all__ = ["CappedOutput"]


class CappedOutput:
    """Takes any amount of output and keeps at most `bytes_max` of it; for one thread."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._head_max = (bytes_max + 1) // 2
        self._tail_max = bytes_max - self._head_max
        self._head = bytearray()
        self._tail = bytearray()
        #: How many bytes came, kept or not.
        self.seen = 0

    def add(self, data: bytes) -> None:
        """Take what came next."""
        self.seen += len(data)
        room = self._head_max - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room else data
        # Cut now and then, not each time: a cut moves all that is kept.
        if len(self._tail) > 2 * self._tail_max + 65_536:
            self._cut()

    def text(self) -> bytes:
        """Return the output; where something is left out, a line says how much."""
        self._cut()
        left_out = self.seen - len(self._head) - len(self._tail)
        note = f"\n[... {left_out} bytes left out ...]\n".encode() if left_out else b""
        return bytes(self._head) + note + bytes(self._tail)

    def _cut(self) -> None:
        del self._tail[: max(0, len(self._tail) - self._tail_max)]
