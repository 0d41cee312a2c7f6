#: act: a value of 50 MB
#: status: completed
x = "v" * 50_000_000
x
