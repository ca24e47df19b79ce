from __future__ import annotations

from lock_order import Vault


def test_gold_for_cash():
    vault = Vault()
    assert vault.sell_gold(3) == 13
    assert vault.gold == 7
    assert vault.buy_gold(1) == 8
    assert vault.cash == 12
