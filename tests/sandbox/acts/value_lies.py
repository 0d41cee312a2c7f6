#: act: a value that lies and raises
#: status: completed
class X:
    __class__ = int
    def __repr__(self):
        raise RuntimeError("no")
    def __reduce__(self):
        raise RuntimeError("no")
X()
