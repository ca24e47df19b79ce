def item(name, price):
    return {"name": name, "price": price}
