import unittest

from shop import invoice, item, labels


class Shop(unittest.TestCase):
    def test_invoice_reads_what_an_item_holds(self):
        self.assertEqual(invoice.lines([item.item("tea", 3)]), [3])

    def test_label_shows_the_price(self):
        self.assertEqual(labels.label(3), "3 EUR")


if __name__ == "__main__":
    unittest.main()
