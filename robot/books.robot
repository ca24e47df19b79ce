*** Settings ***
Documentation     The books survive the process: budgets, costs, errors and the audit trail.
Library           CleverAgentsLibrary.py
Test Teardown     Clean Up
Test Tags         smoke

*** Test Cases ***
Reading Books That Nobody Has Opened Leaves No Trace
    Run Command    cleveragents costs
    Exit Code Should Be    0
    Stdout Should Be Empty
    Stderr Should Contain    No costs by day yet
    Run Command    cleveragents errors
    Run Command    cleveragents audit verify
    Exit Code Should Be    0
    Nothing Should Be Left Behind

Budget Set By One Command Stops The Next Process
    Run Command    cleveragents budget set day 0.50
    Exit Code Should Be    0
    Stderr Should Contain    cleveragents budget clear day
    Run Python
    ...    from pathlib import Path
    ...    from cleveragents.infrastructure.durable_cost_tracker import DurableCostTracker
    ...    from cleveragents.infrastructure.store import Store
    ...    with Store(Path(".cleveragents/state.db")) as store, DurableCostTracker(store) as costs:
    ...    ${SPACE * 4}costs.reserve("0.40").settle("0.30")
    ...    ${SPACE * 4}costs.reserve("0.30")
    Stderr Should Contain    The next call could exceed the budget of day
    Run Command    cleveragents costs
    Stdout Should Contain    0.30 USD \ 0.00 USD \ 0.50 USD \ 0.20 USD

Call Of A Killed Process Is Charged Until It Is Corrected
    Run Python
    ...    import os, signal
    ...    from pathlib import Path
    ...    from cleveragents.infrastructure.durable_cost_tracker import DurableCostTracker
    ...    from cleveragents.infrastructure.store import Store
    ...    costs = DurableCostTracker(Store(Path("state.db")), lease_s=0.1)
    ...    costs.reserve("0.40")
    ...    os.kill(os.getpid(), signal.SIGKILL)
    Exit Code Should Be    -9
    Run Python
    ...    import json, os, subprocess
    ...    os.environ["CLEVERAGENTS_STORE"] = "state.db"
    ...    def answer(*words):
    ...    ${SPACE * 4}command = ["cleveragents", "costs", "--json", *words]
    ...    ${SPACE * 4}lines = subprocess.run(command, capture_output=True, check=True).stdout
    ...    ${SPACE * 4}return [json.loads(line) for line in lines.splitlines()]
    ...    lost = answer()[-1]
    ...    print(lost["kind"], answer("settle", lost["id"], "0.25")[0]["now"], answer()[-1])
    Exit Code Should Be    0
    Stdout Should Contain    unconfirmed 0.25 USD, settled
    Stdout Should Contain    'spent_usd': '0.25'
    Run Command    cleveragents audit verify    CLEVERAGENTS_STORE=state.db
    Exit Code Should Be    0

Edited Audit Trail Is Found And Its First Broken Event Named
    Run Command    cleveragents budget set day 5
    Run Command    cleveragents budget set day 6
    Run Command    cleveragents audit verify
    Exit Code Should Be    0
    Stdout Should Contain    2 events hold
    Run Python
    ...    import sqlite3
    ...    with sqlite3.connect(".cleveragents/state.db") as store:
    ...    ${SPACE * 4}store.execute("UPDATE events SET at = 0 WHERE seq = 2")
    Run Command    cleveragents audit verify
    Exit Code Should Be    1
    Stderr Should Contain    event 2 or its place was changed
