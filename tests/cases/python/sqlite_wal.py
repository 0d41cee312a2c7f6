#: what: a database file in WAL mode that two connections and a second process use at once
#: stdout: wal, rows 40, total 780, locked True, fts 1
import multiprocessing
import sqlite3


def insert(path, start):
    database = sqlite3.connect(path, timeout=10)
    with database:
        database.executemany("INSERT INTO item VALUES (?, ?)", [(n, n) for n in range(start, start + 20)])
    database.close()


if __name__ == "__main__":
    path = "/tmp/items.db"
    database = sqlite3.connect(path, timeout=0.1, isolation_level=None)
    mode = database.execute("PRAGMA journal_mode=WAL").fetchone()[0]
    database.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, amount INTEGER CHECK (amount >= 0))")
    writers = [multiprocessing.Process(target=insert, args=(path, start)) for start in (0, 20)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(timeout=10)
        assert writer.exitcode == 0

    other = sqlite3.connect(path, timeout=0.1, isolation_level=None)
    database.execute("BEGIN IMMEDIATE")
    try:
        other.execute("BEGIN IMMEDIATE")
        locked = False
    except sqlite3.OperationalError as error:
        locked = "locked" in str(error)
    database.execute("ROLLBACK")

    rows, total = other.execute("SELECT count(*), sum(amount) FROM item").fetchone()
    other.execute("CREATE VIRTUAL TABLE page USING fts5(text)")
    other.execute("INSERT INTO page VALUES ('the quick brown fox')")
    hits = other.execute("SELECT count(*) FROM page WHERE page MATCH 'quick'").fetchone()[0]
    print(f"{mode}, rows {rows}, total {total}, locked {locked}, fts {hits}")
