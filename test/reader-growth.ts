// A process that counts the work of readers: `node test/reader-growth.ts NAME... [--whole]` prints a line for each reader: the exponent
// of each input, the steepest first. It loads nothing but the readers, because each count looks at all code that is loaded.
import { parseArgs } from 'node:util'
import { FIRST, growthOf, openWorkMeter } from './growth.ts'
import { readers } from './readers.ts'

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { whole: { type: 'boolean', default: false } },
})
const isWhole = values.whole
using meter = openWorkMeter()
for (const name of positionals) {
  const { limit, usualLimit = limit, isApart = false, inputs, read } = readers[name]!
  const most = isWhole ? limit : usualLimit
  const exponents: [number, string][] = []
  // What is kept between calls is made before anything is counted.
  await meter.count(async () => {
    for (const build of Object.values(inputs)) await read(build(FIRST))
  })
  for (const [input, build] of Object.entries(inputs))
    exponents.push([await growthOf(meter, (size) => read(build(size)), most, { isWhole, isApart }), input])
  console.log(JSON.stringify(exponents.sort(([one], [other]) => other - one)))
}
