#: act: name the program so that it lands elsewhere
#: options: --name ../main.py
#: status: bad_request
print("ESCAPED: ran")
