"""Two calls of Linux that Python does not offer; where they are missing, others do their work."""

from __future__ import annotations

import errno
import os
from functools import cache
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from collections.abc import Callable

    from cleveragents.infrastructure.apply.files import Place

NO_REPLACE: Final = 1
EXCHANGE: Final = 2
# What kernels and file systems answer that do not know the call or the flag.
_UNKNOWN: Final = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})


@cache
def function(name: str) -> Callable[..., int] | None:
    """Find a function of the C library, or None when it has none of this name."""
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    return cast("Callable[..., int] | None", getattr(library, name, None))


def sync_file_system(folder: int) -> bool:
    """Make everything on the file system of a folder durable; False where that is unknown."""
    syncfs = function("syncfs")
    if syncfs is None:
        return False
    if syncfs(folder) != 0:
        raise _last_error()
    return True


def rename(source: Place, target: Place, flag: int) -> bool:
    """Rename with a flag, in one atomic step; False where the flag is unknown."""
    renameat2 = function("renameat2")
    if renameat2 is None:
        return False
    old, new = os.fsencode(source[1]), os.fsencode(target[1])
    if renameat2(source[0], old, target[0], new, flag) == 0:
        return True
    error = _last_error()
    if error.errno in _UNKNOWN:
        return False
    raise error


def _last_error() -> OSError:
    import ctypes

    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
