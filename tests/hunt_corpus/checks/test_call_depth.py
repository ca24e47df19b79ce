from __future__ import annotations

import pytest
from call_depth import DepthGuard


def test_depth_is_limited():
    guard = DepthGuard(2)
    assert guard.enter() == 1
    assert guard.enter() == 2
    with pytest.raises(RecursionError):
        guard.enter()
    assert guard.leave() == 1
