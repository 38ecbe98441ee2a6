import unittest

from basket import total


class Total(unittest.TestCase):
    def test_a_plain_sum(self) -> None:
        self.assertEqual(total([250, 199]), 449)

    def test_a_discount_rounds_half_up(self) -> None:
        self.assertEqual(total([102], discount_percent=30), 71)
        self.assertEqual(total([101], discount_percent=50), 51)

    def test_an_empty_basket_costs_nothing(self) -> None:
        self.assertEqual(total([], discount_percent=10), 0)


if __name__ == "__main__":
    unittest.main()
