*** Settings ***
Documentation     What actors changed reaches the user's files once, whole, and can be taken back.
Library           CleverAgentsLibrary.py
Test Teardown     Clean Up
Test Tags         smoke

*** Test Cases ***
Changes Of Two Actors Are Reviewed Applied And Taken Back
    Write File    app.txt    one    two    three    four    five
    Run Python
    ...    from pathlib import Path
    ...    from cleveragents.workspace import Workspace
    ...    with Workspace(Path(".").absolute()) as workspace:
    ...    ${SPACE * 4}workspace.begin("p")
    ...    ${SPACE * 4}for actor, word in (("ann", b"one"), ("bob", b"five")):
    ...    ${SPACE * 8}with workspace.attempt("p", actor, actor=actor) as attempt:
    ...    ${SPACE * 12}text = attempt.files.read("app.txt").replace(word, actor.encode())
    ...    ${SPACE * 12}attempt.files.write("app.txt", text)
    ...    ${SPACE * 8}workspace.merge(attempt.changeset_id)
    Exit Code Should Be    0
    Run Command    cleveragents changes diff p
    Stdout Should Contain    +ann
    Run Command    cleveragents changes apply p
    Exit Code Should Be    0
    File Should Have Lines    app.txt    ann    two    three    four    bob
    Run Command    cleveragents changes revert p
    Exit Code Should Be    0
    File Should Have Lines    app.txt    one    two    three    four    five

Apply That Was Killed Is Finished By The Next Command
    Run Python
    ...    import os, signal
    ...    from pathlib import Path
    ...    from cleveragents.infrastructure.apply.files import Files
    ...    from cleveragents.workspace import Workspace
    ...    workspace = Workspace(Path(".").absolute())
    ...    workspace.begin("p")
    ...    with workspace.attempt("p", "many") as attempt:
    ...    ${SPACE * 4}for number in range(20):
    ...    ${SPACE * 8}attempt.files.write(f"file-{number}.txt", b"whole\\n")
    ...    workspace.merge(attempt.changeset_id)
    ...    def die(point, seen=[]):
    ...    ${SPACE * 4}seen.append(point)
    ...    ${SPACE * 4}if seen.count("mid-flip") == 10:
    ...    ${SPACE * 8}os.kill(os.getpid(), signal.SIGKILL)
    ...    workspace.changes.applies._engine._files = Files(die)
    ...    workspace.changes.applies.apply("p")
    Exit Code Should Be    -9
    Run Command    cleveragents costs
    Exit Code Should Be    0
    Stderr Should Contain    warning[CA4109]
    Stderr Should Contain    died half-way and was finished
    File Should Have Lines    file-0.txt    whole
    File Should Have Lines    file-19.txt    whole
    Run Command    cleveragents audit verify
    Exit Code Should Be    0
    Run Command    cleveragents changes revert p --json
    Json Field Should Be    files    20
