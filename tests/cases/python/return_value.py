#: what: a program that sets __return_value__, which is its value whatever stands in the last line
#: result: {"mean": 4.5, "items": ["a", null, true], "text": "ü\n"}
numbers = range(10)


def mean(values):
    values = list(values)
    return sum(values) / len(values)


__return_value__ = {"mean": mean(numbers), "items": ["a", None, True], "text": "ü\n"}
"not the value"
