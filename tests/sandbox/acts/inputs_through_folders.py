#: act: put an input beside the home directory by dots further in
#: options: --file {file}:a/b/../../../escape
#: status: bad_request
print("ESCAPED: ran")
