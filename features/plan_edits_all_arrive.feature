@CA4101
Feature: The edits of many actors on one codebase all arrive

  Scenario: Sixteen actors edit one file at the same moment
    Given a file with 16 chapters
    When 16 actors edit a chapter of their own at the same moment
    Then the plan is "done"
    And the user's file is untouched
    And after the apply all 16 edits are in the user's file

  Scenario: Two actors edit the same chapter
    Given a file with 1 chapters
    When 2 actors edit the same chapter at the same moment
    Then a person is asked to choose between 2 versions
    And the user's file is untouched
