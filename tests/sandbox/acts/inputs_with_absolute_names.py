#: act: put an input anywhere by an absolute name
#: options: --file {file}:/etc/escape
#: status: bad_request
print("ESCAPED: ran")
