# Draws the Mandelbrot set twice: as text on the terminal, and as a picture in a file.


def escape_time(c, limit=60):
    z = 0
    for n in range(limit):
        if abs(z) > 2:
            return n
        z = z * z + c
    return limit


def rows(width, height):
    for y in range(height):
        yield [escape_time(complex(x / width * 3.2 - 2.3, y / height * 2.4 - 1.2)) for x in range(width)]


shades = " .:-=+*#%@"
for row in rows(64, 20):
    print("".join(shades[min(n, 59) * len(shades) // 60] for n in row))

with open("mandelbrot.pgm", "wb") as picture:
    picture.write(b"P5 160 120 255\n")
    for row in rows(160, 120):
        picture.write(bytes(255 - n * 255 // 60 for n in row))

print("Hello from inside. The picture is in mandelbrot.pgm.")
