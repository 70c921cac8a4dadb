// A process that counts the work of one reader: `node test/reader-growth.ts NAME [whole]` prints the exponent of each input, the
// steepest first. It loads nothing but the readers, because each count looks at all code that is loaded.
import { growthOf, openWorkMeter } from './growth.ts'
import { readers } from './readers.ts'

const [name = '', whole] = process.argv.slice(2)
const { limit, usualLimit = limit, isApart = false, inputs, read } = readers[name]!
const isWhole = whole === 'whole'
using meter = openWorkMeter()
const exponents: [number, string][] = []
for (const [input, build] of Object.entries(inputs))
  exponents.push([
    await growthOf(meter, (size) => read(build(size)), isWhole ? limit : usualLimit, { isWhole, isApart }),
    input,
  ])
console.log(JSON.stringify(exponents.sort(([one], [other]) => other - one)))
