Feature: Edits of many actors survive each other

  Scenario: Two actors edit one file at the same time
    Given a plan on a file "app.txt" of 20 lines
    When "ann" writes "by ann" into line 3 and "bob" writes "by bob" into line 15, both at once
    Then the plan has "by ann" in line 3
    And the plan has "by bob" in line 15

  Scenario: The user goes on editing while actors work
    Given a plan on a file "app.txt" of 20 lines
    And "ann" wrote "by ann" into line 3
    And the user wrote "by me" into line 15 meanwhile
    When the user applies the plan
    Then the command succeeds
    And "app.txt" has "by ann" in line 3
    And "app.txt" has "by me" in line 15

  Scenario: An actor's work waits in its sandbox until the user applies it
    Given a plan on a file "app.txt" of 20 lines
    When "ann" writes "by ann" into line 3 and "bob" writes "by bob" into line 15, both at once
    Then no file of the user has changed

  Scenario: The work of an actor that fails half-way is kept and not merged
    Given a plan on a file "app.txt" of 20 lines
    When "ann" fails after writing "half" into line 3
    Then what "ann" wrote is on record
    And the plan has changed nothing
