*** Settings ***
Documentation     A plan from its file to the tree and back, through the death of its process.
Library           CleverAgentsLibrary.py
Test Setup        Make A Tree With A Plan
Test Teardown     Clean Up
Test Tags         smoke

*** Test Cases ***
Killed Plan Goes On, Is Applied And Taken Back
    Kill A Run After    fetched
    Run Command    cleveragents list
    Stdout Should Contain    stopped
    Run Command    cleveragents resume
    Exit Code Should Be    0
    Stderr Should Contain    1 done before
    Stderr Should Contain    2 of 2 nodes, 2 files, 0.10 USD
    With The Plan    diff
    Stdout Should Contain    +++ b/fetched.txt
    Stdout Should Contain    +++ b/packed.txt
    With The Plan    apply
    Stderr Should Contain    Applied 2 files
    File Should Be There    packed.txt
    Run Command    cleveragents undo
    Exit Code Should Be    0
    File Should Not Be There    packed.txt

Interrupted Plan Keeps What Is Done
    Interrupt Command    cleveragents run plan.yaml    2 nodes, at most
    Exit Code Should Be    130
    Stderr Should Contain    paused after
    Stderr Should Contain    cleveragents resume

Wrong Plan Is Refused Before Anything Runs
    Write File    wrong.yaml    goal: x    nodes: {a: {needs: [b]}}
    Run Command    cleveragents run wrong.yaml
    Exit Code Should Be    2
    Stderr Should Contain    wrong.yaml:2:

*** Keywords ***
Make A Tree With A Plan
    Write File    plan.yaml
    ...    goal: Survive
    ...    nodes:
    ...    ${SPACE * 2}fetch:
    ...    ${SPACE * 4}actor:
    ...    ${SPACE * 6}scripted:
    ...    ${SPACE * 8}- {write: fetched.txt, text: "1"}
    ...    ${SPACE * 8}- {spend: 0.10}
    ...    ${SPACE * 2}pack:
    ...    ${SPACE * 4}needs: [fetch]
    ...    ${SPACE * 4}actor:
    ...    ${SPACE * 6}scripted:
    ...    ${SPACE * 8}- {print: fetched}
    ...    ${SPACE * 8}- {sleep_until_s: 2}
    ...    ${SPACE * 8}- {write: packed.txt, text: "2"}

Kill A Run After
    [Arguments]    ${line}
    Run Python
    ...    import json, subprocess
    ...    run = subprocess.Popen(["cleveragents", "run", "plan.yaml", "--json"], stdout=subprocess.PIPE)
    ...    next(told for told in run.stdout if json.loads(told).get("text") == "${line}")
    ...    run.kill()
    ...    run.wait()
    Exit Code Should Be    0

With The Plan
    [Arguments]    ${command}
    Run Python
    ...    import json, subprocess
    ...    listed = subprocess.run(["cleveragents", "list", "--json"], capture_output=True).stdout
    ...    plan = json.loads(listed)["plan"]
    ...    subprocess.run(["cleveragents", "${command}", plan], check=True)
    Exit Code Should Be    0

File Should Be There
    [Arguments]    ${name}
    Run Python    import pathlib; assert pathlib.Path("${name}").exists()
    Exit Code Should Be    0

File Should Not Be There
    [Arguments]    ${name}
    Run Python    import pathlib; assert not pathlib.Path("${name}").exists()
    Exit Code Should Be    0
