*** Settings ***
Documentation     Each service of the installed package works from a program of a user.
Library           CleverAgentsLibrary.py
Test Teardown     Clean Up
Test Tags         smoke

*** Test Cases ***
Cost Tracker Counts Exactly Under Twenty Threads
    Run Python
    ...    from cleveragents import CostTracker
    ...    from cleveragents.testing import run_together
    ...    tracker = CostTracker(daily_budget=5.00)
    ...    run_together([lambda: tracker.record_usage(0.00075)] * 20)
    ...    print(tracker.get_daily_spend(), tracker.check_daily_budget())
    Exit Code Should Be    0
    Stdout Should Contain    0.015 True

Circuit Breaker Counts Exactly Under Twenty Threads
    Run Python
    ...    from cleveragents.application.services.acms_pipeline import CircuitBreaker
    ...    from cleveragents.testing import run_together
    ...    breaker = CircuitBreaker(failure_threshold=20)
    ...    run_together([lambda: breaker.record_failure("s")] * 19)
    ...    print(breaker.is_open("s"))
    ...    breaker.record_failure("s")
    ...    print(breaker.is_open("s"))
    Exit Code Should Be    0
    Stdout Should Contain    False\nTrue

Error Recovery Keeps Every First Error
    Run Python
    ...    from cleveragents import ErrorRecoveryService
    ...    from cleveragents.testing import run_together
    ...    service = ErrorRecoveryService()
    ...    run_together([lambda: service.record_error("p", ValueError("x"))] * 20)
    ...    print([one.seq for one in service.history("p").records] == list(range(1, 21)))
    Exit Code Should Be    0
    Stdout Should Contain    True

Changes Of Two Actors Stay Apart
    Run Python
    ...    from cleveragents import ChangeEntry, PlanExecutionContext
    ...    from cleveragents.testing import run_together
    ...    plan = PlanExecutionContext(plan_id="p")
    ...    def act(name):
    ...    ${SPACE * 4}plan.start_changeset()
    ...    ${SPACE * 4}plan.record_change(ChangeEntry.create(name, "x", actor=name))
    ...    run_together([lambda: act("a"), lambda: act("b")])
    ...    print(sorted(len(one.entries) for one in plan.changesets()))
    Exit Code Should Be    0
    Stdout Should Contain    [1, 1]

Container Wires One Of Each Service
    Run Python
    ...    from pathlib import Path
    ...    from cleveragents import Container, ContextRequest
    ...    with Container() as services:
    ...    ${SPACE * 4}same = services.plan_context("p") is services.plan_context("p")
    ...    ${SPACE * 4}context = services.pipeline.build(ContextRequest("anything", Path(".")))
    ...    print(same, [str(one.status) for one in context.reports])
    Exit Code Should Be    0
    Stdout Should Contain    True ['ok', 'ok', 'ok', 'ok', 'ok', 'ok']
