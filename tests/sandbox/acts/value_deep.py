#: act: a value nested a hundred thousand deep
#: status: completed
x = []
for _ in range(100000):
    x = [x]
x
