@CA3107
Feature: One bad strategy never stops the work

  Scenario: A strategy that fails costs only its own part
    Given a healthy strategy "files" and a sick strategy "index"
    When an actor asks for context
    Then the context has what "files" found
    And "index" is said to have failed

  Scenario: A strategy that keeps failing is paused and said to be skipped
    Given a healthy strategy "files" and a sick strategy "index"
    When an actor asks for context 4 times
    Then "index" is said to be skipped
    And the context has what "files" found

  Scenario: A strategy that is well again comes back after its pause
    Given a healthy strategy "files" and a sick strategy "index"
    And "index" is paused
    When "index" is well again and 31 seconds pass and an actor asks for context
    Then "index" is said to be fine

  @concurrency @tdd_issue
  Scenario: Failures at the same moment are all counted
    Given a healthy strategy "files" and a sick strategy "index"
    When 3 actors report a failure of "index" at the same moment
    Then "index" is paused with 3 failures

  @concurrency
  Scenario: Exactly one of many tries a strategy whose pause is over
    Given a healthy strategy "files" and a sick strategy "index"
    And "index" is paused
    When 31 seconds pass and 16 actors want "index" at the same moment
    Then 1 of them may try it
