// Enables Node's compile cache, because compilation takes most of the time of a start. The cache is in the folder of the
// packages, whose owner can change the code anyway. If that folder is not writable, a start only takes longer.
//
// Load this file before all others. It is no TypeScript: what turns that into JavaScript takes a tenth of a second to load, in the
// process and in each of its threads, and with a filled cache no other file needs it.
'use strict'
const { enableCompileCache } = require('node:module')
const { join } = require('node:path')

enableCompileCache(join(__dirname, '../node_modules/.cache/countersign'))
