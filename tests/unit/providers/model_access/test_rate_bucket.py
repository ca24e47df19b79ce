"""The rule of a rate limit, without threads: exact, fair, never too much and never idle."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleveragents.domain.errors import SetupError
from cleveragents.providers.model_access.rate_bucket import NS_PER_S, SHARES, Bucket, RateLimits
from cleveragents.providers.model_access.rate_line import Line, Meter, Waiter

MINUTE_NS = 60 * NS_PER_S
NEVER_NS = 10**30


def whole(bucket: Bucket) -> Fraction:
    return Fraction(bucket.level, SHARES)


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "7"])
@pytest.mark.parametrize("name", ["requests_per_min", "tokens_per_min"])
def test_limits_refuse_what_is_no_whole_number_from_1(name, value):
    with pytest.raises(SetupError, match=name):
        RateLimits(**{name: value})


@pytest.mark.parametrize("value", [0, -1.0, 60.5, float("nan"), None, True])
def test_limits_refuse_a_burst_of_no_time_or_of_more_than_a_minute(value):
    with pytest.raises(SetupError, match="burst_s"):
        RateLimits(burst_s=value)


def test_limits_say_what_they_allow():
    assert str(RateLimits()) == "no limit"
    assert str(RateLimits(7)) == "7 requests in a minute"
    assert str(RateLimits(7, 900)) == "7 requests and 900 tokens in a minute"


def test_bucket_fills_by_its_limit_in_a_minute():
    empty = Bucket.full(90, 60, 0).take(90 * SHARES)
    assert whole(empty) == 0
    assert whole(empty.at(20 * NS_PER_S)) == 30
    assert whole(empty.at(10 * MINUTE_NS)) == 90


def test_bucket_fills_the_same_in_one_step_or_in_a_million():
    """A limit of 7 in a minute is no whole number in a nanosecond; floats would drift."""
    steps = empty = Bucket.full(7, 60, 0).take(7 * SHARES)
    for number in range(1, 100_001):
        steps = steps.at(number * 333_333)
    assert steps == empty.at(100_000 * 333_333)
    assert steps.level == 7 * 100_000 * 333_333


def test_bucket_ignores_a_clock_that_was_read_too_early():
    bucket = Bucket.full(60, 60, 5 * NS_PER_S)
    assert bucket.at(4 * NS_PER_S) is bucket


def test_bucket_holds_no_more_than_its_burst():
    assert whole(Bucket.full(60, 5, 0).at(MINUTE_NS)) == 5


def test_bucket_lets_more_than_it_holds_go_when_full_and_pays_off_the_debt():
    bucket = Bucket.full(60, 60, 0)
    assert bucket.ready_ns(100 * SHARES) == 0
    indebted = bucket.take(100 * SHARES)
    assert whole(indebted) == -40
    assert indebted.ready_ns(SHARES) == 41 * NS_PER_S
    assert indebted.ready_ns(100 * SHARES) == 100 * NS_PER_S


def test_bucket_takes_the_right_to_give_back_away_as_it_fills():
    """Otherwise a long call gives back what has long flowed in, and a minute sees it twice."""
    taken = Bucket.full(60, 60, 0).take(60 * SHARES)
    assert taken.give_back(60 * SHARES, 60 * SHARES).level == 60 * SHARES
    later = taken.at(45 * NS_PER_S)
    assert (whole(later), later.lent) == (45, 15 * SHARES)
    assert taken.at(60 * NS_PER_S).lent == 0


@given(
    per_min=st.integers(1, 10**7),
    burst_s=st.sampled_from([0.001, 1, 7.5, 60]),
    taken=st.integers(0, 10**7),
    wanted=st.integers(0, 10**7),
    start_ns=st.integers(0, 10**18),
)
def test_bucket_is_ready_at_the_first_nanosecond_that_suffices(
    per_min, burst_s, taken, wanted, start_ns
):
    bucket = Bucket.full(per_min, burst_s, start_ns).take(taken * SHARES)
    need = min(wanted * SHARES, bucket.capacity)
    ready_ns = bucket.ready_ns(wanted * SHARES)
    assert bucket.at(ready_ns).level >= need
    assert ready_ns == start_ns or bucket.at(ready_ns - 1).level < need


def test_meter_lets_the_rights_of_the_oldest_lapse_first():
    meter = Meter(Bucket.full(60, 60, 0))
    meter.take(1, 20, 0)
    meter.take(2, 20, 0)
    meter.take(3, 20, 0)
    now_ns = 30 * NS_PER_S
    meter.settle(2, 20, now_ns)
    assert whole(meter.bucket) == 30 + 10
    meter.settle(1, 20, now_ns)
    assert whole(meter.bucket) == 40
    meter.settle(3, 20, now_ns)
    assert whole(meter.bucket) == 60


def test_meter_gives_everything_back_in_any_order_at_one_moment():
    meter = Meter(Bucket.full(100, 60, 0))
    meter.take(1, 50, 0)
    meter.take(2, 50, 0)
    meter.settle(2, 50, 0)
    meter.settle(1, 50, 0)
    assert whole(meter.bucket) == 100


def test_meter_takes_what_was_used_beyond_the_estimate():
    meter = Meter(Bucket.full(60, 60, 0))
    meter.take(1, 10, 0)
    meter.settle(1, -70, 0)
    assert whole(meter.bucket) == -20


def waiter(plan: str, tokens: int = 1, woken: list[str] | None = None) -> Waiter:
    told = [] if woken is None else woken
    return Waiter(plan, tokens, NEVER_NS, lambda: told.append(plan))


def test_line_serves_plans_in_turn_and_a_plan_in_its_order():
    line = Line(RateLimits(), 0)
    order = [waiter(plan) for plan in "aaabbc"]
    for one in order:
        line.join(one)
    served = []
    while (head := line.head()) is not None:
        served.append(order.index(head))
        line.go(head, 0)
    assert served == [0, 3, 5, 1, 4, 2]


def test_line_lets_a_plan_with_one_call_go_after_one_of_a_plan_with_a_thousand():
    line = Line(RateLimits(), 0)
    for _ in range(1000):
        line.join(waiter("many"))
    line.join(waiter("one"))
    turns = 0
    while (head := line.head()).plan != "one":
        line.go(head, 0)
        turns += 1
    assert turns == 1


def test_line_wakes_one_whoever_leaves_goes_or_gives_back():
    woken: list[str] = []
    line = Line(RateLimits(60, 60), 0)
    waiters = [waiter(plan, woken=woken) for plan in "abcde"]
    for one in waiters:
        line.join(one)
    line.leave(waiters[0])
    assert woken == ["b"]
    ticket = line.go(waiters[1], 0)
    assert woken == ["b", "c"]
    line.settle(ticket, requests=0, tokens=1, now_ns=0)
    assert woken == ["b", "c", "c"]
    line.settle(ticket, requests=0, tokens=0, now_ns=0)
    line.leave(waiters[4])
    line.leave(waiters[4])
    assert woken == ["b", "c", "c"]
    assert line.waiting == 2


def test_line_wakes_at_a_hold_only_those_who_would_wait_in_vain():
    woken: list[str] = []
    line = Line(RateLimits(), 0)
    for plan, deadline_ns in {"early": 5, "late": 50}.items():
        line.join(Waiter(plan, 1, deadline_ns, lambda plan=plan: woken.append(plan)))
    line.hold(20)
    line.hold(10)
    assert woken == ["early", "early"]
    assert line.ready_ns(1) == 20


@dataclass
class World:
    """A line on a clock of whole numbers: everybody goes at the first moment that allows it."""

    line: Line
    now_ns: int = 0
    #: When, what was estimated, and what was used.
    gone: dict[int, list[int]] = field(default_factory=dict)

    def serve(self) -> None:
        while (head := self.line.head()) is not None:
            if self.line.ready_ns(head.tokens) > self.now_ns:
                return
            self.gone[self.line.go(head, self.now_ns)] = [self.now_ns, head.tokens, head.tokens]

    def pass_time(self, until_ns: int) -> None:
        self.serve()
        while (head := self.line.head()) is not None:
            ready_ns = self.line.ready_ns(head.tokens)
            if ready_ns > until_ns:
                break
            self.now_ns = ready_ns
            before = len(self.gone)
            self.serve()
            assert len(self.gone) > before, "idle at the moment that should suffice"
        self.now_ns = until_ns

    def settle(self, choice: int, used_part: Fraction, *, refund: bool) -> None:
        open_tickets = [number for number in self.gone if len(self.gone[number]) == 3]
        if not open_tickets:
            return
        number = open_tickets[choice % len(open_tickets)]
        _, tokens, _ = self.gone[number]
        used = 0 if refund else int(tokens * used_part)
        self.line.settle(number, requests=int(refund), tokens=tokens - used, now_ns=self.now_ns)
        self.gone[number][2] = used
        self.gone[number].append(int(refund))

    def most_in_a_minute(self) -> tuple[int, int]:
        """Return the most tokens and the most requests that any window of 60 s saw."""
        calls = [
            (one[0], one[2], 1 - (one[3] if len(one) > 3 else 0)) for one in self.gone.values()
        ]
        windows = [
            [one for one in calls if start <= one[0] <= start + MINUTE_NS] for start, _, _ in calls
        ]
        return (
            max((sum(one[1] for one in window) for window in windows), default=0),
            max((sum(one[2] for one in window) for window in windows), default=0),
        )


SECONDS = [0, 0, 1, 30, 59, 60]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(SECONDS),
        st.sampled_from(["come", "come", "settle", "refund", "quit", "hold"]),
        st.integers(0, 5),
        # Of the bucket, of the estimate, or of a minute.
        st.sampled_from([Fraction(0), Fraction(1, 3), Fraction(1), Fraction(1)]),
    ),
    max_size=40,
)


@given(
    limits=st.builds(
        RateLimits,
        st.sampled_from([1, 7, 1000]),
        st.sampled_from([7, 60, 1000]),
        st.sampled_from([1, 20, 60, 60]),
    ),
    larger=st.sampled_from([1, 1, 3]),
    steps=STEPS,
)
def test_no_minute_sees_more_than_the_limit_and_the_burst_and_none_is_idle(limits, larger, steps):
    """Whatever comes, is given back late, quits or is held; a call counts when it went."""
    world = World(Line(limits, 0))
    burst = Fraction(limits.tokens_per_min * limits.burst_s, 60)
    for after_s, what, choice, part in steps:
        world.pass_time(world.now_ns + after_s * NS_PER_S)
        if what == "come":
            world.line.join(waiter(f"plan {choice % 3}", int(part * burst * larger)))
        elif what == "quit" and (head := world.line.head()) is not None:
            world.line.leave(head)
        elif what == "hold":
            world.line.hold(world.now_ns + int(part * MINUTE_NS))
        else:
            world.settle(choice, part, refund=what == "refund")
        world.serve()
    most_tokens, most_requests = world.most_in_a_minute()
    # A call larger than the bucket is the one exception: it goes alone, from a full bucket.
    assert most_tokens <= limits.tokens_per_min + burst * larger
    request_burst = Fraction(limits.requests_per_min * limits.burst_s, 60)
    assert most_requests <= limits.requests_per_min + max(1, request_burst)
    world.pass_time(NEVER_NS)
    assert world.line.waiting == 0, "everybody goes in the end"


def test_a_long_call_cannot_give_back_what_has_long_flowed_in():
    """The case that a bucket without rights gets wrong: 300 tokens in the minute of 200."""
    world = World(Line(RateLimits(None, 100), 0))
    world.line.join(waiter("long", 100))
    world.pass_time(120 * NS_PER_S)
    world.line.join(waiter("next", 100))
    world.serve()
    world.settle(0, Fraction(0), refund=True)
    for _ in range(9):
        world.line.join(waiter("greedy", 100))
    world.pass_time(600 * NS_PER_S)
    assert world.most_in_a_minute()[0] == 200
