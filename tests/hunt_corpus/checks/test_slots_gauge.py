from __future__ import annotations

from slots_gauge import Gauge


def test_peak_stays():
    gauge = Gauge()
    assert gauge.increase(3) == 3
    assert gauge.decrease() == 2
    assert gauge.increase() == 3
    assert gauge.peak() == 3
