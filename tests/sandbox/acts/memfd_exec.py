#: act: run a program from memory
#: status: completed
#: stdout-has: 1000
import os
fd = os.memfd_create("x")
os.write(fd, open("/usr/bin/id", "rb").read())
pid = os.fork()
if pid == 0:
    os.execve(fd, ["id", "-u"], {})
os.waitpid(pid, 0)
print("contained: it runs inside, as anything else")
