"""A disk that takes its time: `fsync` and `fdatasync` of a program wait before they sync.

Disks differ a hundredfold in this, from 0.03 ms to 30, and sharing commits wins as much as a sync
costs. The programs stay as they are; a small library stands before the C library's two functions.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_SOURCE: Final = """\
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
static int late(const char *name, int fd) {
    int (*sync)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    struct timespec wait = {0, WAIT_NS};
    nanosleep(&wait, 0);
    return sync(fd);
}
int fsync(int fd) { return late("fsync", fd); }
int fdatasync(int fd) { return late("fdatasync", fd); }
"""


def can_be_slow() -> bool:
    """Tell whether there is a compiler, on a system that loads libraries first."""
    return shutil.which("cc") is not None and os.uname().sysname == "Linux"


def _slept_too_long(seconds: float) -> float:
    """Return by how much a sleep exceeds what was asked, which differs from machine to machine."""
    began = time.perf_counter()
    for _ in range(20):
        time.sleep(seconds)
    return (time.perf_counter() - began) / 20 - seconds


@contextmanager
def slower_by(seconds: float) -> Iterator[dict[str, str]]:
    """Give the environment of a program whose every sync takes so much longer, up to a second."""
    seconds -= _slept_too_long(seconds)
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "late.c", Path(folder) / "late.so"
        source.write_text(_SOURCE)
        wait = f"-DWAIT_NS={int(seconds * 1e9)}"
        build = ("cc", "-shared", "-fPIC", "-O2", wait, "-o", str(library), str(source), "-ldl")
        subprocess.run(build, check=True)
        yield {**os.environ, "LD_PRELOAD": str(library)}
