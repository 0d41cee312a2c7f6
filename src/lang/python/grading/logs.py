"""The fixture caplog: what is logged during a test, by the tests and by the submission."""

import logging
from contextlib import contextmanager


class Log(logging.Handler):
    def __init__(self):
        super().__init__(0)
        self.records, self.levels = [], {}
        self.setFormatter(logging.Formatter('%(levelname)-8s %(name)s:%(filename)s:%(lineno)d %(message)s'))
        logging.getLogger().addHandler(self)

    def emit(self, record):
        record.message = record.getMessage()
        self.records.append(record)

    @property
    def handler(self):
        return self

    @property
    def messages(self):
        return [record.getMessage() for record in self.records]

    @property
    def record_tuples(self):
        return [(record.name, record.levelno, record.getMessage()) for record in self.records]

    @property
    def text(self):
        return ''.join(self.format(record) + '\n' for record in self.records)

    def clear(self):
        self.records.clear()

    def set_level(self, level, logger=None):
        found = logging.getLogger(logger)
        self.levels.setdefault(logger, found.level)
        found.setLevel(level)

    @contextmanager
    def at_level(self, level, logger=None):
        found = logging.getLogger(logger)
        before = found.level
        found.setLevel(level)
        try:
            yield
        finally:
            found.setLevel(before)

    def end(self):
        for logger, level in self.levels.items():
            logging.getLogger(logger).setLevel(level)
        logging.getLogger().removeHandler(self)
