@CA2103
Feature: A plan stops before the call that would exceed its budget

  Scenario: What could exceed the budget is not paid, and the rest is kept
    Given a plan with a budget of 0.50 USD and 3 nodes that pay 0.20 USD each
    When the plan is run
    Then the plan is "failed" with the code CA2103
    And 2 of its nodes are done
    And the plan has paid 0.40 USD

  Scenario: More budget lets the plan go on
    Given a plan with a budget of 0.50 USD and 3 nodes that pay 0.20 USD each, stopped by it
    When the user goes on with a budget of 0.60 USD
    Then the plan is "done"
    And the plan has paid 0.60 USD

  Scenario: Nodes that pay at the same moment share the budget
    Given a plan with a budget of 1.00 USD and 20 nodes at once that pay 0.10 USD each
    When the plan is run
    Then the plan is "failed" with the code CA2103
    And the plan has paid 1.00 USD
