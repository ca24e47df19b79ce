from __future__ import annotations

from cleveragents.domain.error_record import Action, Decision, ErrorCategory, ErrorRecord, Standing
from cleveragents.domain.error_tally import ErrorTally, Fault, Tries

RECORD = ErrorRecord(plan_id="p", node="n", fingerprint="f", category=ErrorCategory.BAD_OUTPUT)
RETRY = Decision(action=Action.RETRY, reason="r", delay_s=1.5)


def test_an_unknown_fault_stands_at_the_beginning_and_asking_leaves_no_trace():
    tally = ErrorTally()
    assert tally.standing(RECORD) == Standing()
    assert tally == ErrorTally()


def test_a_record_is_a_loop_from_the_given_time_on_and_counted_as_one():
    tally = ErrorTally()
    kept = [tally.add(RECORD, loop_after=2), tally.add(RECORD, loop_after=2)]
    assert [(record.seq, record.category) for record in kept] == [
        (1, ErrorCategory.BAD_OUTPUT),
        (2, ErrorCategory.LOOP),
    ]
    assert tally.by_category == {ErrorCategory.BAD_OUTPUT: 1, ErrorCategory.LOOP: 1}
    assert tally.add(RECORD, loop_after=None).category is ErrorCategory.BAD_OUTPUT


def test_a_decision_is_counted_and_never_lowers_the_rung():
    tally = ErrorTally()
    replan = Decision(action=Action.REPLAN, reason="r")
    kept = [tally.decided(RECORD, decision, 7.0) for decision in (RETRY, replan, RETRY)]
    assert [(decision.seq, decision.at) for decision in kept] == [(1, 7.0), (2, 7.0), (3, 7.0)]
    assert tally.standing(RECORD) == Standing(
        rung=Action.REPLAN.rung,
        tries={Action.RETRY: 2, Action.REPLAN: 1},
        waited_s=3.0,
        replans=1,
    )


def test_a_success_clears_the_tries_of_its_node_alone():
    other = ErrorRecord(plan_id="p", node=None, fingerprint="f")
    tally = ErrorTally()
    for record in (RECORD, other):
        tally.decided(record, RETRY, 0.0)
    tally.succeeded("n")
    assert tally.tries == {(None, ErrorCategory.UNKNOWN): Tries({Action.RETRY: 1}, 1.5)}
    assert tally.faults["n", "f"] == Fault(rung=Action.RETRY.rung)


def test_memory_is_bounded_and_no_ladder_goes_down_by_it():
    tally = ErrorTally()
    first = ErrorRecord(plan_id="p", node="n", fingerprint="first")
    tally.add(first, loop_after=None)
    tally.decided(first, Decision(action=Action.ASK, reason="x", plan_id="p", record_seq=1), 0.0)
    for number in range(50):
        tally.add(ErrorRecord(plan_id="p", node="n", fingerprint=f"{number}"), loop_after=None)
        tally.forget_oldest(10)
    assert len(tally.faults) == 10
    assert tally.count == 51
    assert tally.standing(first).rung == Action.ASK.rung
    other = ErrorRecord(plan_id="p", node="other", fingerprint="first")
    assert tally.standing(other).rung == 0
