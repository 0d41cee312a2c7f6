#: what: JSON, CSV, INI, TOML, XML, pickle, base64 and struct back and forth
#: stdout: json csv ini toml xml pickle base64 struct
import base64
import configparser
import csv
import io
import json
import pickle
import struct
import tomllib
import xml.etree.ElementTree as ElementTree

done = []
value = {"name": "Zoë", "list": [1, 2.5, None, True], "nested": {"a": "\u2028\"\\"}}
assert json.loads(json.dumps(value)) == value and json.loads(json.dumps(value, ensure_ascii=False)) == value
done.append("json")

table = [["id", "text"], ["1", "a,b"], ["2", 'quote " and\nline']]
buffer = io.StringIO()
csv.writer(buffer).writerows(table)
assert list(csv.reader(io.StringIO(buffer.getvalue()))) == table
assert list(csv.DictReader(io.StringIO(buffer.getvalue())))[0] == {"id": "1", "text": "a,b"}
done.append("csv")

config = configparser.ConfigParser()
config.read_string("[server]\nport = 8080\nhost = %(name)s.local\nname = box\n")
assert config.getint("server", "port") == 8080 and config["server"]["host"] == "box.local"
done.append("ini")

assert tomllib.loads('[a]\nb = [1, 2]\nwhen = 2024-05-01\n')["a"]["when"].year == 2024
done.append("toml")

tree = ElementTree.fromstring("<list><item n='1'>one</item><item n='2'>&lt;two&gt;</item></list>")
assert [item.text for item in tree.findall("item[@n='2']")] == ["<two>"]
done.append("xml")

assert pickle.loads(pickle.dumps(value, protocol=5)) == value
done.append("pickle")
assert base64.b64decode(base64.b64encode(bytes(range(256)))) == bytes(range(256))
done.append("base64")
assert struct.unpack("<IhQ", struct.pack("<IhQ", 1, -2, 2 ** 63)) == (1, -2, 2 ** 63)
done.append("struct")
print(*done)
