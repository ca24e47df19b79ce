from __future__ import annotations

import pytest
from shared_handle import SharedHandle


def test_open_while_used():
    handle = SharedHandle()
    assert handle.acquire() == 1
    assert handle.acquire() == 2
    assert not handle.release()
    assert handle.is_open()
    assert handle.release()
    assert not handle.is_open()
    with pytest.raises(ValueError, match="released"):
        handle.release()
