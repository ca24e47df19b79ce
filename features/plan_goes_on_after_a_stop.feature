@CA6204
Feature: A plan that is stopped keeps what is done and goes on

  Scenario: What is done is kept when the user stops the plan
    Given a plan of 3 nodes, one after the other
    When the user stops the plan while its first node works
    Then the plan is "paused"
    And 1 of its nodes is done

  Scenario: A plan that was stopped goes on with what is left
    Given a plan of 3 nodes that was stopped while its first node worked
    When the user goes on with the plan
    Then the plan is "done"
    And every node worked once
    And the files of all 3 nodes are in the plan

  Scenario: A finished plan is not run again
    Given a plan of 3 nodes that is done
    When the user goes on with the plan
    Then the plan is "done"
    And every node worked once
