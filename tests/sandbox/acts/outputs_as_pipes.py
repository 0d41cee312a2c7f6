#: act: leave a FIFO, a socket and a folder where files are expected, to block whoever opens them
#: options: --export *:{out}
#: host-check: exported kept.txt
#: within: 5
import os
import socket

os.mkfifo("pipe")
os.mkfifo("data.csv")
socket.socket(socket.AF_UNIX).bind("socket.txt")
os.mkdir("folder.txt")
with open("kept.txt", "w", encoding="ascii") as file:
    file.write("kept")
print("contained: left a pipe, a socket and a folder")
