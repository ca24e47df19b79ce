def name(user):
    return user["name"]
