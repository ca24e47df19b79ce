def left(stock, sold):
    return stock - sold
