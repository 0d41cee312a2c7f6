#: what: linear algebra, a Fourier transform and random numbers with numpy
#: needs: numpy
#: stdout: solution [2.0, 3.0, -1.0], peak at 5, mean near 0.5, eigen 3.0
import numpy as np

a = np.array([[3.0, 2.0, -1.0], [2.0, -2.0, 4.0], [-1.0, 0.5, -1.0]])
b = a @ np.array([2.0, 3.0, -1.0])
solution = np.linalg.solve(a, b)

time = np.arange(256) / 256
spectrum = np.abs(np.fft.rfft(np.sin(2 * np.pi * 5 * time) + 0.2 * np.cos(2 * np.pi * 20 * time)))

generator = np.random.default_rng(7)
sample = generator.random(100_000)
again = np.random.default_rng(7).random(100_000)
assert np.array_equal(sample, again)
assert abs(sample.mean() - 0.5) < 0.01

large = generator.normal(size=(200, 200))
product = large @ large.T
assert np.allclose(product, product.T)
values = np.linalg.eigvalsh(np.array([[2.0, 1.0], [1.0, 2.0]]))
mapped = np.memmap("/tmp/array.bin", dtype="float64", mode="w+", shape=(1000,))
mapped[:] = np.arange(1000)
mapped.flush()
assert np.fromfile("/tmp/array.bin")[-1] == 999
print(f"solution {[round(float(x), 6) for x in solution]}, peak at {int(spectrum.argmax())}, mean near 0.5,",
      f"eigen {values[-1]:.1f}")
