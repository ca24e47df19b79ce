"""Run as a program: it ends with 1 where a discount is wrong."""

from discount import discounted

assert discounted(200, 10) == 180, f"10 % off 200 is 180, got {discounted(200, 10)}"
assert discounted(50, 0) == 50
