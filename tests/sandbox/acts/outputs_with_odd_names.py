#: act: give outputs names that hurt who prints, stores or joins them
#: options: --export *:{out}
#: host-check: odd_names
import os

names = [b"new\nline", b"escape\x1b[2Jclear", b"bell\x07", b"not-utf-8-\xff\xfe", b"\xed\xa0\x80surrogate", b"x" * 255, "\u202egpj.exe".encode(),
         b" leading", b"trailing ", b"-rf", b"--help", b"...", b"$(reboot)", b"`id`", b'quote"', b"back\\slash", b"a:b", b"<script>",
         "ü (1).txt".encode(), b"%2e%2e%2f", b"CON", b"con.txt", b"*", b"?", b"#", b"~", b".hidden", b"tab\there", "e\u0301".encode(), "é".encode(),
         b"{}", b"\xf4\x90\x80\x80", b"del\x7f"]
for name in names:
    with open(b"/home/user/" + name, "wb") as file:
        file.write(name)
print("contained:", len(os.listdir(b".")), "names")
