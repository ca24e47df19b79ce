Feature: A change is never recorded as another actor's

  @CA4001
  Scenario: A change without a changeset is refused
    When an actor records a change without having started a changeset
    Then it is told "No active changeset. Call start_changeset() first."

  @CA4003
  Scenario: A change outside the repository is refused
    Given an actor with a changeset of its own
    When the actor records a change of the path "../secrets.txt"
    Then the change is refused with the code CA4003
    And the changeset is empty

  Scenario: The diff of a plan shows what its actors did
    Given an actor with a changeset of its own
    When the actor creates the file "hello.txt" with the line "hello"
    Then the diff adds the line "hello" to "hello.txt"

  @concurrency @tdd_issue
  Scenario: Actors that work at the same moment keep their changes apart
    When 8 actors with overlapping changesets record 3 changes each
    Then every actor's changeset has its own 3 changes in order

  @concurrency
  Scenario: Actors that ask for a plan at the same moment share one
    When 4 actors ask for the plan at the same moment
    Then all of them get the same one
