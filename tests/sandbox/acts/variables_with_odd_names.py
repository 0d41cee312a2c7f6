#: act: a variable whose name is none, to confuse whoever reads it
#: options: --env "A B=1"
#: status: bad_request
print("ESCAPED: ran with a variable of an odd name")
