// Lets Node keep what it compiles, because compiling is most of a start. The cache lies beside the packages: their owner may change
// what is run in any case. Where that folder cannot be written, a start only takes longer. Imported before all else.
import { enableCompileCache } from 'node:module'
import { join } from 'node:path'

enableCompileCache(join(import.meta.dirname, '../node_modules/.cache/countersign'))
