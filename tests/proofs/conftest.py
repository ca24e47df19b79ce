"""A proof that is skipped is green and proves nothing: without frontrun the run fails."""

from __future__ import annotations

import pytest
from frontrun._cooperative import is_patched


def pytest_collection_finish(session: pytest.Session) -> None:
    if session.items and not is_patched():
        pytest.exit("run the proofs by `nox -s proofs`: locks are not patched", returncode=1)
