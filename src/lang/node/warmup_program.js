'use strict';

// The program that a waiting worker reads and checks, again and again, before it gets its own (worker.js).  It never runs.

const values = [1, 2, 3].map((value) => value * 2);
console.log(values);
values.reduce((sum, value) =>
  sum + value);
