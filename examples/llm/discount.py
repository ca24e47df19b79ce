"""The discounts of a shop."""


def discounted(price, percent):
    return price - percent
