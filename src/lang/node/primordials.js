'use strict';

// Methods as functions, taken from the library before a program can change it: uncurry(String.prototype.slice)(text, 1).
// Code that runs beside a program's does not iterate either ([...x], `for of`, destructured arrays), nor assign to elements
// of new arrays, nor look for members that may not be there: Array.prototype and Object.prototype are the program's to
// change.

const { bind, call } = Function.prototype;

const uncurry = bind.bind(call);

module.exports = { uncurry };
