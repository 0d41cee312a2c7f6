#: act: put an input beside the home directory by dots in its name
#: options: --file {file}:../escape
#: status: bad_request
print("ESCAPED: ran")
