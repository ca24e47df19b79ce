from __future__ import annotations

from passed_lock import Ledger


def test_entries_make_the_balance():
    ledger = Ledger()
    assert ledger.post(5) == 5
    assert ledger.post(2) == 7
    assert ledger.reverse_last() == 2
    assert ledger.post(1) == 6
    ledger.reverse_last()
    ledger.reverse_last()
    assert ledger.reverse_last() is None
