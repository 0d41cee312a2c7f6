#: what: a child on a pseudo-terminal of its own, with window size, echo switched off and control characters
#: stdout: terminal 40x100, answer [secret], no echo, interrupted
import fcntl
import os
import pty
import struct
import termios
import time

pid, master = pty.fork()
if pid == 0:
    name = input()
    size = os.get_terminal_size()
    try:
        print(f"{'terminal' if os.isatty(0) else 'none'} {size.lines}x{size.columns} [{name}]", flush=True)
        # Short naps: a signal that comes just before one does not cut it short.
        for _ in range(2000):
            time.sleep(0.01)
    except KeyboardInterrupt:
        os._exit(7)

fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
attributes = termios.tcgetattr(master)
attributes[3] &= ~termios.ECHO
termios.tcsetattr(master, termios.TCSANOW, attributes)
# The child looks at its terminal after it got this line, so both settings are there by then.
os.write(master, b"secret\n")
seen = b""
while b"]" not in seen:
    seen += os.read(master, 1000)
kind, size, answer = seen.decode().split()
echo = "no echo" if seen.count(b"secret") == 1 else "echo"
os.write(master, b"\x03")
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
assert status == 7, status
print(f"{kind} {size}, answer {answer}, {echo}, interrupted")
