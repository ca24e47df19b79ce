"""How hard git tries to make a content smaller: not at all where that would be in vain.

Most of the time that git needs for a large file goes into packing it, and pictures, archives and
models are packed already.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final

from cleveragents.infrastructure.git.program import UNARMED, configured

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Below it, looking would cost as much as packing.
_LARGE_BYTES: Final = 1_000_000
_SAMPLES: Final = 8
_SAMPLE_BYTES: Final = 8_192
#: What must be saved to be worth the time.
_WORTH: Final = 0.9
_UNPACKED: Final = configured({**UNARMED, "core.looseCompression": "0"})


def packing_for(data: bytes) -> Mapping[str, str]:
    """Return the variables for git to keep a content with."""
    return _UNPACKED if len(data) >= _LARGE_BYTES and not _shrinks(data) else {}


def _shrinks(data: bytes) -> bool:
    """Try it with pieces from all over the content."""
    starts = range(0, len(data), len(data) // _SAMPLES)
    tried = b"".join(data[start : start + _SAMPLE_BYTES] for start in starts)
    return len(zlib.compress(tried, 1)) < _WORTH * len(tried)
