#: what: text of many scripts through normalisation, encodings, files and file names
#: stdout: Grüße, Ωμέγα, 日本語, עברית, 🎉🏽 – 5 scripts, names kept
#: files: 日本語.txt [Video]_ü_(1).txt
import unicodedata
from pathlib import Path

WORDS = ["Grüße", "Ωμέγα", "日本語", "עברית", "🎉🏽"]

assert unicodedata.normalize("NFC", "u\u0308") == "ü"
assert unicodedata.name("Ω") == "GREEK CAPITAL LETTER OMEGA"
assert "straße".upper() == "STRASSE" and "İ".lower() != "i"
assert len("🎉🏽") == 2 and len("🎉🏽".encode()) == 8
for encoding in ("utf-8", "utf-16", "utf-32", "gb18030"):
    for word in WORDS:
        assert word.encode(encoding).decode(encoding) == word
assert "日本語".encode("shift_jis").decode("shift_jis") == "日本語"
assert "naïve café".encode("ascii", "xmlcharrefreplace") == b"na&#239;ve caf&#233;"
assert b"\xff\xfe".decode("utf-8", "replace") == "\ufffd\ufffd"

for name in ("日本語.txt", "[Video]_ü_(1).txt"):
    Path(name).write_text("\n".join(WORDS), encoding="utf-8")
    assert name in {path.name for path in Path.cwd().iterdir()}
    assert Path(name).read_text(encoding="utf-8").split("\n") == WORDS
print(", ".join(WORDS), "– 5 scripts, names kept")
