import os as o
e = eval
print(e('1+1'))
getattr(o, 'sys' + 'tem')('ls')
