*** Settings ***
Documentation     A data race from its discovery to a tree without it.
Library           CleverAgentsLibrary.py
Test Teardown     Clean Up
Test Tags         smoke

*** Test Cases ***
Race Is Found Mended And Gone
    Write File    stock.py
    ...    class Stock:
    ...    ${SPACE * 4}"""A stock; threads may share it."""
    ...
    ...    ${SPACE * 4}def __init__(self):
    ...    ${SPACE * 8}self.items = {}
    ...
    ...    ${SPACE * 4}def add(self, name):
    ...    ${SPACE * 8}if name not in self.items:
    ...    ${SPACE * 12}self.items[name] = 0
    ...    ${SPACE * 8}self.items[name] += 1
    ...
    ...
    ...    STOCK = Stock()
    Run Command    cleveragents hunt --seconds 3 --fix --no-check --yes
    Exit Code Should Be    0
    Stdout Should Contain    Data race: stock:Stock.items
    Stdout Should Contain    fix\ \ \ \ \ \ a fix holds
    Run Command    cleveragents hunt --seconds 3
    Exit Code Should Be    0
