#: what: a program whose last line is an expression, which becomes its value
#: stdout: counted
#: result: {"the": 3, "fox": 2, "dog": 1}
#: vm: yes
import collections
import re

TEXT = "The fox saw the dog; the fox ran."

counts = collections.Counter(re.findall(r"\w+", TEXT.lower()))
print("counted")
{word: counts[word] for word in ("the", "fox", "dog")}
