Feature: An apply is done whole, or not at all

  @CA4109
  Scenario: The computer kills the apply in the middle
    Given a plan on a file "app.txt" of 20 lines
    And "ann" wrote "by ann" into line 3 and made 5 more files
    And an apply of the plan was killed after its first file
    When the user asks for something else
    Then the user is warned with CA4109
    And "app.txt" has "by ann" in line 3
    And all 5 files are there
    And the plan is on record as applied

  Scenario: A file in the way stops all of it
    Given a plan on a file "app.txt" of 20 lines
    And "ann" wrote "by ann" into line 3 and made 5 more files
    And one of these files is there already, and is ignored
    When the user applies the plan
    Then the command is refused with CA4102, and somebody must choose
    And no file of the user has changed

  Scenario: A look changes nothing
    Given a plan on a file "app.txt" of 20 lines
    And "ann" wrote "by ann" into line 3
    When the user applies the plan with "--dry-run"
    Then the command succeeds
    And no file of the user has changed

  Scenario: A part of the plan can be applied first
    Given a plan on a file "app.txt" of 20 lines
    And "ann" wrote "by ann" into line 3
    And "bob" wrote "by bob" into line 15
    When the user applies the plan with "--actor bob"
    Then "app.txt" has "by bob" in line 15
    And "app.txt" has "line 3" in line 3
