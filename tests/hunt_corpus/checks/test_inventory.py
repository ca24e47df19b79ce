from __future__ import annotations

import pytest
from inventory import Inventory, OutOfStock


def test_stock_goes_down_and_up():
    inventory = Inventory()
    assert inventory.reserve("apple", 4) == 1
    inventory.restock("apple", 2)
    assert inventory.level("apple") == 3
    with pytest.raises(OutOfStock):
        inventory.reserve("pear")
