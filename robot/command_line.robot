*** Settings ***
Documentation     The installed command starts, answers, works and stops.
Library           CleverAgentsLibrary.py
Test Teardown     Clean Up
Test Tags         smoke

*** Test Cases ***
Installed Command Answers With Its Version
    Run Command    cleveragents --version
    Exit Code Should Be    0
    Stdout Should Contain    cleveragents 0.
    Run Command    clever --version
    Exit Code Should Be    0

Command Without Arguments Says What It Can Do
    Run Command    cleveragents --help
    Exit Code Should Be    0
    Stdout Should Contain    demo
    Run Command    cleveragents
    Exit Code Should Be    2

Demo Is Killed And Resumed And Balances Its Books
    Run Command    cleveragents demo --json
    Exit Code Should Be    0
    Json Field Should Be    actors    12
    Json Field Should Be    ran_again    0
    Every Check Should Hold
    Stderr Should Contain    killed with SIGKILL
    Nothing Should Be Left Behind

Wrong Number Of Actors Is Refused With The Rule
    Run Command    cleveragents demo --actors 0
    Exit Code Should Be    2
    Stderr Should Contain    error[CA1005]: `--actors` must be 8 to 64, got 0
    Stdout Should Be Empty

Demo That Is Interrupted At Its Start Leaves Nothing Behind
    Interrupt Command    cleveragents demo --actors 64    after_line_with=demo
    Exit Code Should Be    130
    Stderr Should Not Contain    Traceback
    Nothing Should Be Left Behind

Demo That Is Interrupted In Its Plan Leaves Nothing Behind
    Interrupt Command    cleveragents demo --actors 64    after_line_with=total
    Exit Code Should Be    130
    Stderr Should Not Contain    Traceback
    Nothing Should Be Left Behind

Setting That Breaks Its Rule Is Named With Its Source
    Write File    cleveragents.toml    context_workers_max = 0
    Run Command    cleveragents settings
    Exit Code Should Be    3
    Stderr Should Contain    error[CA1001]
    Stderr Should Contain    cleveragents.toml
    Run Command    cleveragents settings    CLEVERAGENTS_CONTEXT_WORKERS_MAX=8
    Exit Code Should Be    0
    Stdout Should Contain    environment CLEVERAGENTS_CONTEXT_WORKERS_MAX

Context Of A Task Is Found And Is The Same Every Time
    Write File    ledger.py    def settle_invoice(amount): ...
    Write File    pages.py    def show_page(name): ...
    Run Command    cleveragents context settle_invoice --tokens 200 --json
    Exit Code Should Be    0
    Json Field Should Be    files    ['ledger.py']
    Run Command    cleveragents context settle_invoice --tokens 200
    Exit Code Should Be    0
    Stdout Should Contain    def settle_invoice
    Stderr Should Contain    lexical
    Run Command    cleveragents context settle_invoice --tokens 0
    Exit Code Should Be    2
    Stderr Should Contain    error[CA1005]: `--tokens` must be 1 to
    Run Command    cleveragents doctor
    Stdout Should Contain    code index
