// Numbers in paths and queries, for every operation that reads one: decimal digits only.
import t from 'tap'
import { catalog } from '../../server/catalog.ts'
import { buildDocument } from '../../server/http/openapi.ts'
import { openAccountHarness } from '../accounts/harness.ts'

const office = await openAccountHarness()
t.teardown(() => office[Symbol.asyncDispose]())

const WRONG = [
  '',
  '0x2',
  '1e1',
  '1E1',
  ' 3',
  '3 ',
  '+3',
  '-3',
  '03',
  '3.0',
  '3.',
  '٣',
  '1_0',
  'Infinity',
  'null',
  'true',
]
const TOO_LARGE = '9007199254740992'

interface Parameter {
  name: string
  in: string
  schema: { type?: string }
}
interface Described {
  operationId: string
  parameters: Parameter[]
}

const paths = buildDocument({ config: office.api.config }, catalog).paths as Record<string, Record<string, Described>>
const numbers = Object.entries(paths).flatMap(([path, { get }]) =>
  (get?.parameters ?? [])
    .filter(({ schema }) => schema.type === 'integer' || schema.type === 'number')
    .map((parameter) => ({ path, get: get as Described, ...parameter })),
)

t.test('the parameters are found', async (t) => {
  const names = numbers.map(({ get, name }) => `${get.operationId} ${name}`)
  for (const name of ['get_chain from', 'get_consistency to', 'get_receipt serial', 'list_receipts before'])
    t.ok(names.includes(name), name)
  t.ok(names.length >= 14, `${names.length}`)
})

for (const { path, get, name, in: place } of numbers)
  t.test(`${get.operationId}: ${name}`, async (t) => {
    const owner = await office.register({ tier: 'pro' })
    const ask = async (spelled: string) => {
      const filled = path.replace(/\{(\w+)\}/g, (_, member) => (member === name ? encodeURIComponent(spelled) : '1'))
      const query = new URLSearchParams(place === 'query' ? { [name]: spelled } : {})
      if (get.operationId === 'get_consistency' && name !== 'from') query.set('from', '1')
      return owner.call('GET', `${filled}?${query}`)
    }
    for (const spelled of [...WRONG, TOO_LARGE]) {
      if (spelled === '' && place === 'path') continue
      const { status, body } = await ask(spelled)
      t.equal(status, 400, JSON.stringify(spelled))
      t.match(body.error, { code: 'invalid_request', message: new RegExp(`^${name}: `) }, JSON.stringify(spelled))
    }
    t.notMatch((await ask('1')).body?.error ?? {}, { message: new RegExp(`^${name}: `) })
    if (place === 'query') {
      const twice = await owner.call('GET', `${path.replace(/\{\w+\}/g, '1')}?from=1&${name}=1&${name}=2`)
      t.equal(twice.status, 400, 'given twice')
    }
  })
