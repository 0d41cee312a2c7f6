#: act: put an input in the place of the program
#: options: --file {file}:main.py
#: status: bad_request
print("ESCAPED: ran")
