Feature: No error is lost, and every error gets a decision

  Scenario: A refused password is not tried again
    When a provider answers an actor with status 401
    Then the error is kept as number 1 with the category "llm.auth"
    And the decision is not to try again

  Scenario: A rate limit is waited for as long as the provider asks
    When a provider answers an actor with status 429 and asks to wait 3 seconds
    Then the error is kept as number 1 with the category "llm.rate_limit"
    And the decision is to try again after at least 3 seconds

  Scenario: A secret in an error is not kept
    When an actor fails with a message that holds the key "sk-proj-A1b2C3d4E5f6G7h8I9j0K1l2M3n4"
    Then no record holds the key "sk-proj-A1b2C3d4E5f6G7h8I9j0K1l2M3n4"

  @concurrency @tdd_issue
  Scenario: Two first errors of a plan at the same moment are both kept
    When 2 actors fail at the same moment
    Then 2 errors are kept, numbered without a gap

  @concurrency
  Scenario: Errors of twenty actors at the same moment are all kept
    When 20 actors fail at the same moment
    Then 20 errors are kept, numbered without a gap
