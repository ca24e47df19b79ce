Feature: Where two versions meet in one place, both are kept until somebody chooses

  @CA4101
  Scenario: Two actors write into the same line
    Given a plan on a file "app.txt" of 20 lines
    When "ann" writes "by ann" into line 3 and "bob" writes "by bob" into line 3, both at once
    Then the conflict tells line 3 of "app.txt", "ann" and "bob"
    And the plan has "by ann" in line 3

  Scenario Outline: A choice ends the conflict
    Given a plan on a file "app.txt" of 20 lines
    And line 3 is "by ann" for "ann" and "by bob" for "bob"
    When the user takes <side>
    Then the command succeeds
    And the plan has "<line>" in line 3

    Examples:
      | side   | line   |
      | ours   | by ann |
      | theirs | by bob |

  @CA4102
  Scenario: The user and the plan write into the same line
    Given a plan on a file "app.txt" of 20 lines
    And "ann" wrote "by ann" into line 3
    And the user wrote "by me" into line 3 meanwhile
    When the user applies the plan
    Then the command is refused with CA4102, and somebody must choose
    And no file of the user has changed

  Scenario Outline: The user decides whose line it is
    Given a plan on a file "app.txt" of 20 lines
    And "ann" wrote "by ann" into line 3
    And the user wrote "by me" into line 3 meanwhile
    When the user applies the plan with "--take <whose>"
    Then "app.txt" has "<line>" in line 3

    Examples:
      | whose | line   |
      | mine  | by me  |
      | plan  | by ann |
