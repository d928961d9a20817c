"""A small file in three languages, for the tests of sketches and guards."""

PYTHON = '''\
"""A shop."""
import os
import sys


class Shop:
    """Holds stock."""

    def __init__(self, name):
        self.name = name
        self.stock = {}

    def add(self, sku, n):
        # count up
        self.stock[sku] = self.stock.get(sku, 0) + n
        return self.stock[sku]

    def remove(self, sku, n):
        self.stock[sku] -= n
        return self.stock[sku]

    def total(self):
        return sum(self.stock.values())


# The command line.
# Prints the total.
def main():
    shop = Shop(os.path.basename(sys.argv[0]))
    shop.add("a", 1)
    print(shop.total())


if __name__ == "__main__":
    main()
'''

JAVA = """\
package shop;

import java.util.Map;
import java.util.HashMap;

/**
 * Holds stock.
 */
public class Shop {
    private final Map<String, Integer> stock = new HashMap<>();

    public int add(String sku, int n) {
        stock.merge(sku, n, Integer::sum);
        return stock.get(sku);
    }

    // Taking out never goes below zero.
    // The caller checks.
    public int remove(String sku, int n) {
        int left = stock.get(sku) - n;
        stock.put(sku, left);
        return left;
    }

    public int total() {
        int sum = 0;
        for (int n : stock.values()) {
            sum += n;
        }
        return sum;
    }
}
"""

SQL = """\
-- tables
CREATE TABLE item (
    sku text,
    n integer
);

-- views
CREATE VIEW total AS
SELECT sum(n) AS n
FROM item;
"""
