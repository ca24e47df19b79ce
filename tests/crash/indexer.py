"""Indexes a tree in a cache folder, and says so when it begins and when it is done."""

from __future__ import annotations

import sys
from pathlib import Path

from cleveragents.domain.context_request import ContextRequest
from cleveragents.domain.stop_signal import StopSignal
from cleveragents.infrastructure.code_index import keeper
from cleveragents.infrastructure.code_index.index import StoredCodeIndex

if __name__ == "__main__":
    root, cache = map(Path, sys.argv[1:])
    keeper._PORTION = 4  # many transactions, so that death finds one of them
    with StoredCodeIndex(cache) as index:
        print("begin", flush=True)
        index.build(ContextRequest("task", root), StopSignal())
        print("done", flush=True)
