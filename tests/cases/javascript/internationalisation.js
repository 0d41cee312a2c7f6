//: what: numbers, dates, plurals, lists, sorting and segments in several languages
//: stdout: 1.234.567,89 | 1,234.5 USD | 29. Februar 2024 | one few many | a, b, and c | Äpfel,Zebra | 2 letters | 18:30
const assert = require('assert');

const german = new Intl.NumberFormat('de-DE', { maximumFractionDigits: 2 }).format(1234567.891);
const money = new Intl.NumberFormat('en-US', { minimumFractionDigits: 1 }).format(1234.5);
const day = new Date(Date.UTC(2024, 1, 29, 12));
const date = new Intl.DateTimeFormat('de-DE', { dateStyle: 'long', timeZone: 'UTC' }).format(day);
const rules = new Intl.PluralRules('pl');
const plurals = [1, 3, 7].map((n) => rules.select(n)).join(' ');
const list = new Intl.ListFormat('en', { type: 'conjunction' }).format(['a', 'b', 'c']);
const sorted = ['Zebra', 'Äpfel'].sort(new Intl.Collator('de').compare);
const segments = [...new Intl.Segmenter('en', { granularity: 'grapheme' }).segment('👩‍👩‍👧e\u0301')].length;
const time = new Intl.DateTimeFormat('en-GB', { timeStyle: 'short', timeZone: 'Asia/Kolkata' })
  .format(new Date('2024-01-01T13:00:00Z'));
assert.strictEqual('ı'.localeCompare('i', 'tr', { sensitivity: 'base' }) === 0, false);
assert.strictEqual('I'.toLocaleLowerCase('tr'), 'ı');
assert.strictEqual(new Intl.RelativeTimeFormat('en').format(-1, 'day'), '1 day ago');
console.log([german, `${money} USD`, date, plurals, list, sorted.join(','), `${segments} letters`, time].join(' | '));
