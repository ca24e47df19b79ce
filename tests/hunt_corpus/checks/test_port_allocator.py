from __future__ import annotations

import pytest
from port_allocator import NoPortLeft, PortAllocator


def test_ports_are_lent():
    ports = PortAllocator(9000, 1)
    assert ports.allocate("a") == 9000
    with pytest.raises(NoPortLeft):
        ports.allocate("b")
    assert ports.owner(9000) == "a"
    assert ports.release(9000)
    assert not ports.release(9000)
