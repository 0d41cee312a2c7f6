#: act: get a module of its own loaded into the runner by PYTHONPATH
#: options: --env PYTHONPATH=/home/user
#: status: bad_request
print("ESCAPED: ran with PYTHONPATH")
