#: what: decimals, fractions, large integers and statistics without rounding
#: stdout: 0.30 1/3 2^127-1 is prime, 100! has 158 digits, median 3
import decimal
import math
import statistics
from fractions import Fraction


def is_prime(n):
    """Lucas-Lehmer, for Mersenne numbers."""
    power = n.bit_length()
    s = 4
    for _ in range(power - 2):
        s = (s * s - 2) % n
    return s == 0


with decimal.localcontext() as context:
    context.prec = 50
    root = decimal.Decimal(2).sqrt()
    assert abs(root * root - 2) < decimal.Decimal("1e-48")
price = (decimal.Decimal("0.1") + decimal.Decimal("0.2")).quantize(decimal.Decimal("0.01"))
third = sum((Fraction(1, n * (n + 1)) for n in range(1, 3)), Fraction()) / 2
assert math.isclose(math.fsum([0.1] * 10), 1.0, rel_tol=0, abs_tol=0)
assert math.gcd(2 ** 200, 6 ** 100) == 2 ** 100 and pow(3, -1, 11) == 4
data = [1, 2, 3, 4, 100]
assert statistics.pstdev(data) > 30
verdict = "is prime" if is_prime(2 ** 127 - 1) else "is not prime"
print(price, third, "2^127-1", f"{verdict}, 100! has {len(str(math.factorial(100)))} digits,",
      "median", statistics.median(data))
