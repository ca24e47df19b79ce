Feature: Context is the right code, the same every time

  Background:
    Given a tree in which "invoices.py" defines "settle_invoice" and "pages.py" defines "show_page"

  Scenario: The same question gets the same context, byte for byte
    When a user asks twice for the context of "settle the invoice of a page"
    Then both answers are the same text
    And the best file is "invoices.py"

  Scenario: What was edited in between leaves no trace
    Given a user has asked for the context of "settle the invoice"
    When "pages.py" is edited and put back, and the user asks again
    Then both answers are the same text
    And a user who never asked before gets that text too

  Scenario: Edits of the user are found by the next question
    Given a user has asked for the context of "refund the deposit"
    When "refunds.py" is made, which defines "refund_deposit", and the user asks again
    Then the best file is "refunds.py"

  Scenario: A file that an actor has just written is found by its next question
    When an actor writes "refunds.py", which defines "refund_deposit", and asks for "refund the deposit"
    Then the best file is "refunds.py"
    But the tree of the user has no "refunds.py"

  Scenario: The context never has more tokens than asked for
    When a user asks for the context of "settle the invoice" within 30 tokens
    Then the context has at most 30 tokens

  @CA3107
  Scenario: A strategy that hangs does not hold up the answer
    Given a strategy that hangs
    When a user asks for the context of "settle the invoice"
    Then the best file is "invoices.py"
    And the strategy is said to be late

  @CA3107
  Scenario: A strategy that keeps hanging is paused, and comes back when it is well
    Given a strategy that hangs
    And a user has asked 3 times for the context of "settle the invoice"
    When a user asks for the context of "settle the invoice"
    Then the strategy is said to be skipped
    When it is well again, and 31 seconds pass, and the user asks again
    Then the strategy is said to be fine
