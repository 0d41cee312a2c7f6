/* Written by scripts/sdk-types from /openapi.json: the objects of the HTTP interface.  Do not edit. */
export type * from './types-runs.js'
export type * from './types-sandboxes.js'
export type * from './types-kept.js'
export type * from './types-checks.js'
