//: what: a program whose last line is an expression, a promise here, which becomes its value
//: stdout: counted
//: result: {"words": 9, "longest": "quick", "first": ["brown", "dog", "fox"], "none": null}
const text = "the quick brown fox jumps over the lazy dog";
const words = text.split(" ");
const later = (value) => new Promise((resolve) => setTimeout(resolve, 5, value));

console.log("counted");
later({
  words: words.length,
  longest: words.reduce((best, word) => (word.length > best.length ? word : best)),
  first: [...words].sort().slice(0, 3),
  none: null,
});
