Feature: Agents that ask models keep the promises of all actors

  Scenario: What an agent got wrong is told to it, and it puts it right
    Given a repository with a failing test
    And a model that edits wrongly first and rightly when it is told
    When an agent is asked to make the test pass
    Then the plan of the agent is "done"
    And the test passes with its changes
    And the books say what the model billed

  @CA2103
  Scenario: A question that could exceed the budget is never sent
    Given a repository with a failing test
    And a model that edits wrongly first and rightly when it is told
    When an agent is asked to make the test pass for at most 0.000001 USD
    Then the plan of the agent is "failed"
    And the model was asked nothing
    And nothing is paid
