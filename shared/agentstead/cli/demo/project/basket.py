"""Prices of a basket, in cents."""


def total(prices: list[int], *, discount_percent: int = 0) -> int:
    """Return what a customer pays: the sum, less the discount, rounded half up to a whole cent."""
    amount = sum(prices)
    return amount - amount * discount_percent // 100
