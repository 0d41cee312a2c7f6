#: what: unittest with mocks and doctest, run by the program on itself
#: stdout: 4 tests ok, doctest 0 of 2 failed
import doctest
import io
import sys
import unittest
from unittest import mock


def fibonacci(n):
    """
    >>> [fibonacci(n) for n in range(8)]
    [0, 1, 1, 2, 3, 5, 8, 13]
    >>> fibonacci(90)
    2880067194370816120
    """
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


class TestFibonacci(unittest.TestCase):
    def setUp(self):
        self.fetch = mock.Mock(side_effect=[10, ValueError("no")])

    def test_small(self):
        self.assertEqual(fibonacci(10), 55)

    def test_negative_is_empty(self):
        self.assertEqual(fibonacci(-1), 0)

    def test_mock(self):
        self.assertEqual(self.fetch(), 10)
        with self.assertRaises(ValueError):
            self.fetch()

    def test_patch(self):
        with mock.patch("sys.stdout", new_callable=io.StringIO) as out:
            print("hidden")
        self.assertEqual(out.getvalue(), "hidden\n")


suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
outcome = unittest.TextTestRunner(stream=io.StringIO()).run(suite)
assert outcome.wasSuccessful(), outcome.errors + outcome.failures
documented = doctest.testmod(sys.modules["__main__"])
print(f"{outcome.testsRun} tests ok, doctest {documented.failed} of {documented.attempted} failed")
