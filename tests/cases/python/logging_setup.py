#: what: loggers with levels, a rotating file, a queue between threads and warnings
#: stdout: INFO app.db: connected | WARNING py.warnings | 2 files | from worker
import logging
import logging.handlers
import queue
import threading
import warnings
from pathlib import Path


class Collector(logging.Handler):
    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append(self.format(record))


collector = Collector()
collector.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
root = logging.getLogger()
root.setLevel(logging.INFO)
root.addHandler(collector)
logging.getLogger("app.db").info("connected")
logging.getLogger("app.db").debug("not shown")
logging.captureWarnings(True)
warnings.warn("old call", stacklevel=1)

rotating = logging.handlers.RotatingFileHandler("/tmp/app.log", maxBytes=200, backupCount=1)
log = logging.getLogger("rotating")
log.propagate = False
log.addHandler(rotating)
for number in range(20):
    log.info("message %d", number)
rotating.close()

records = queue.Queue()
listener = logging.handlers.QueueListener(records, collector)
listener.start()
worker_log = logging.getLogger("worker")
worker_log.propagate = False
worker_log.addHandler(logging.handlers.QueueHandler(records))
thread = threading.Thread(target=worker_log.warning, args=("from worker",))
thread.start()
thread.join()
listener.stop()
files = list(Path("/tmp").glob("app.log*"))
print(collector.lines[0], "|", collector.lines[1].split(":")[0], "|", len(files), "files |",
      collector.lines[2].split(": ")[1])
