//: what: numbers, dates, plurals, lists, sorting and segments in several languages with Intl
//: stdout: 1.234.567,89 | $1,234.50 | 5. März 2024 | 09:30 | 2nd 3rd 11th | A, B, and C | ä,b,z / b,z,ä | file2,file10 | 3 | yesterday
//: vm: yes
const assert = require("assert");

const number = new Intl.NumberFormat("de-DE").format(1234567.891).slice(0, 12);
const money = new Intl.NumberFormat("en-US", { style: "currency", currency: "USD" }).format(1234.5);
const day = new Date(Date.UTC(2024, 2, 5, 0, 30));
const date = new Intl.DateTimeFormat("de-DE", { dateStyle: "long", timeZone: "UTC" }).format(day);
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", timeZone: "Asia/Tokyo" }).format(day);

const rules = new Intl.PluralRules("en-US", { type: "ordinal" });
const ends = { one: "st", two: "nd", few: "rd", other: "th" };
const ordinals = [2, 3, 11].map((n) => n + ends[rules.select(n)]).join(" ");
const list = new Intl.ListFormat("en", { type: "conjunction" }).format(["A", "B", "C"]);
const sorted = (language) => ["z", "ä", "b"].sort(new Intl.Collator(language).compare);
const natural = ["file10", "file2"].sort(new Intl.Collator("en", { numeric: true }).compare);
const graphemes = [...new Intl.Segmenter("en", { granularity: "grapheme" }).segment("e\u0301👨‍👩‍👧x")].length;
const ago = new Intl.RelativeTimeFormat("en", { numeric: "auto" }).format(-1, "day");

assert.equal("I".toLocaleLowerCase("tr"), "ı");
assert.equal("straße".localeCompare("strasse", "de", { sensitivity: "base" }), 0);
assert.equal(new Intl.DisplayNames("fr", { type: "region" }).of("DE"), "Allemagne");
console.log([number, money, date, clock, ordinals, list, `${sorted("de")} / ${sorted("sv")}`, natural, graphemes, ago].join(" | "));
