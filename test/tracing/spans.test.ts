// The functions around traced work: without a span they add nothing; with one, a failure stores its code and no message.
import t from 'tap'
import {
  type Attributes,
  inSpan,
  inTrace,
  NO_TRACING,
  presentSpan,
  presentTraceId,
  type Span,
  type Tracing,
} from '../../server/tracing/spans.ts'

/** Keeps what is done with spans, in order. */
function openRecord() {
  const done: unknown[] = []
  const spanOf = (name: string): Span => ({
    traceId: 'trace',
    traceparent: `parent of ${name}`,
    tracestate: 'state',
    set: (attributes: Attributes) => void done.push([name, attributes]),
    begin: (part) => spanOf(`${name}/${part}`),
    end: (errorType) => void done.push([name, 'end', errorType]),
  })
  const tracing: Tracing = { begin: (name) => spanOf(name), [Symbol.asyncDispose]: async () => {} }
  return { done, tracing }
}

t.test('without a span the work is called and nothing else', async (t) => {
  const work = Promise.resolve('done')
  t.equal(
    inSpan('part', {}, () => work),
    work,
    'the very promise of the work',
  )
  t.equal(
    inTrace(NO_TRACING, 'all', {}, () => work),
    work,
  )
  t.same([presentSpan(), presentTraceId()], [{ traceparent: null, tracestate: null }, undefined])
})

t.test('a part ends before the whole; a failure leaves its code, or its name, and no message', async (t) => {
  const { done, tracing } = openRecord()
  const refused = Object.assign(new Error('the key sk-secret was refused'), { code: 'EACCES' })
  await t.rejects(
    inTrace(tracing, 'all', {}, async () => {
      await t.rejects(inSpan('named', {}, () => Promise.reject(new TypeError('sk-secret'))))
      t.same(presentSpan(), { traceparent: 'parent of all', tracestate: 'state' })
      await inSpan('part', {}, () => Promise.reject(refused))
    }),
    refused,
  )
  t.same(done, [
    ['all/named', 'end', 'TypeError'],
    ['all/part', 'end', 'EACCES'],
    ['all', 'end', 'EACCES'],
  ])
})
