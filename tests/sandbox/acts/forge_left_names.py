#: act: have own code run by the ending that only looks for what the program hung on to builtins and sys
#: stdout-has: contained
import builtins
import sys


class Other:
    def __hash__(self):
        return 1

    def __eq__(self, other):
        print("ESCAPED: compared")


class Text(str):
    def __hash__(self):
        if self is known:
            print("ESCAPED: hashed")
            raise ValueError
        return str.__hash__(self)


known = None
name = Text("strange")
for module in builtins, sys:
    vars(module)[Other()] = vars(module)[name] = 1
known = name
print("contained: strange names")
