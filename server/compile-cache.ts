// Enables Node's compile cache, because compilation takes most of the time of a start. The cache is in the folder of the
// packages, whose owner can change the code anyway. If that folder is not writable, a start only takes longer. Import this
// file before all others.
import { enableCompileCache } from 'node:module'
import { join } from 'node:path'

enableCompileCache(join(import.meta.dirname, '../node_modules/.cache/countersign'))
