from __future__ import annotations

import pytest
from bank import Bank, InsufficientFunds


def test_money_stays_in_the_bank():
    bank = Bank()
    bank.transfer("alice", "bob", 30)
    assert bank.total() == 200
    assert bank.deposit("alice", 5) == 75
    with pytest.raises(InsufficientFunds):
        bank.transfer("carol", "bob", 1)
