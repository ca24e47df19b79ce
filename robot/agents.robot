*** Settings ***
Documentation     An agent from its plan to the tree, with a scripted model behind the real protocol.
Library           CleverAgentsLibrary.py
Test Teardown     Clean Up
Test Tags         smoke

*** Test Cases ***
Agent Fixes A Test And Its Cost Is In The Books
    Run Command    cleveragents demo --llm --json
    Exit Code Should Be    0
    Every Check Should Hold
    Books Should Say What The Server Billed

Goal Without A Model Is Told How To Name One
    Run Command    cleveragents run tidy
    Exit Code Should Be    2
    Stderr Should Contain    a goal needs `--model`
