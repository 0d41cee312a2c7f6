#: act: leave a child that holds the output open
#: status: completed
#: host-check: gone 876543
#: vm: yes
import subprocess
subprocess.Popen(["sleep", "876543"], start_new_session=True)
print("done")
