def lines(items):
    return [price(one) for one in items]


def price(one):
    return one["price"]
