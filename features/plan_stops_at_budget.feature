@CA2103
Feature: A plan never spends more than its budget

  Scenario: The plan is stopped before the request that could exceed the budget
    Given a plan with a budget of 1.00 USD, of which 0.90 USD is spent
    When an actor asks for a request that could cost 0.20 USD
    Then the request is not made
    And the refusal has the code CA2103 and names 1.00 USD as limit and 0.90 USD as spent
    And 0.90 USD is spent

  Scenario: The last cent can be spent
    Given a plan with a budget of 1.00 USD, of which 0.99 USD is spent
    When an actor asks for a request that could cost 0.01 USD
    Then the request is made

  Scenario: A request is charged for what it used
    Given a plan with a budget of 1.00 USD, of which 0.00 USD is spent
    When an actor makes a request that could cost 0.80 USD and costs 0.30 USD
    Then 0.30 USD is spent
    And 0.70 USD is left

  Scenario: A bill above what was promised is kept and reported
    Given a plan with a budget of 1.00 USD, of which 0.00 USD is spent
    When an actor makes a request that could cost 0.10 USD and costs 0.25 USD
    Then 0.25 USD is spent
    And the user is told CA2105

  Scenario: A request without an answer is not free
    Given a plan with a budget of 1.00 USD, of which 0.00 USD is spent
    When an actor makes a request that could cost 0.40 USD and nothing is heard of it for 2 hours
    Then 0.40 USD is spent
    And the user is told CA2106

  Scenario: The user is warned once when most of a budget is spent
    Given a plan with a soft budget of 1.00 USD
    When an actor spends 0.30 USD 3 times
    Then the user is told CA2104

  @concurrency
  Scenario: Two actors that ask at the same moment share one budget
    Given a plan with a budget of 1.00 USD, of which 0.90 USD is spent
    When two actors ask at the same moment for a request that could cost 0.08 USD
    Then one request is made and one is not

  @concurrency @tdd_issue
  Scenario: Twenty actors that record a cost at the same moment lose nothing
    Given a plan without a budget
    When 20 actors record 0.00075 USD each at the same moment
    Then 0.015 USD is spent
