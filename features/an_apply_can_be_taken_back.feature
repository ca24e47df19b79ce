Feature: An apply can be taken back, and the taking back too

  Background:
    Given a plan on a file "app.txt" of 20 lines
    And "ann" wrote "by ann" into line 3
    And the user applied the plan

  Scenario: The last apply is taken back
    When the user reverts the plan
    Then the command succeeds
    And "app.txt" has "line 3" in line 3

  Scenario: Later edits elsewhere stay
    Given the user wrote "by me" into line 15 meanwhile
    When the user reverts the plan
    Then "app.txt" has "line 3" in line 3
    And "app.txt" has "by me" in line 15

  @CA4103
  Scenario: A later edit of the same line is not overwritten
    Given the user wrote "by me" into line 3 meanwhile
    When the user reverts the plan
    Then the command is refused with CA4103, and somebody must choose
    And no file of the user has changed

  Scenario: What was taken back can be put back
    Given the user reverted the plan
    When the user reverts the last revert
    Then "app.txt" has "by ann" in line 3

  Scenario: Nothing that is applied cannot be taken back
    Given the user reverted the plan
    When the user reverts the plan
    Then the command is refused with CA4108
