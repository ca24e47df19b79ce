Feature: What is called a race was seen to happen

  Scenario: A stock that loses an item is found, shown and mended
    Given a repository with a stock that two visitors may add to at once
    When the code is hunted for races and mended
    Then one race is told, with every line of how it happens
    And the stock has a lock
    And nothing more is found

  Scenario: A stock that is guarded is left in peace
    Given a repository with a stock that is guarded
    When the code is hunted for races
    Then no race is told
