def label(price):
    return f"{price} EUR"
