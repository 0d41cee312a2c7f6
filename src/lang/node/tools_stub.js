'use strict';

// Where the sandbox was given tools: the stub that calls them, as a global.
function bindTools() {
  if (process.env.CAISSON_TOOLS !== undefined)
    globalThis.tools = require('../tools/node/tools.js');
}

module.exports = { bindTools };
