// A model that answers by the labels, over real HTTP, so that wrong outcomes are caused by the checks around it. It obeys
// every order it reads on a page, too, because that is the worst that a model can do.
import {
  lineWith,
  modelEnv,
  openMessagesServer,
  SILENT,
  verdictOn,
} from '../../test/assessment/semantic/messages-server.ts'
import type { Item } from './labels.ts'

export async function openOracle(items: readonly Item[]) {
  const byClaim = new Map(items.map((item) => [item.claim.replace(/\s+/g, ' '), item]))
  const server = await openMessagesServer((asked) => {
    const item = byClaim.get(asked.claim.replace(/\s+/g, ' '))
    if (!item) return SILENT
    const shown = [...asked.lines.values()].join('\n')
    const first = shown.split('\n').find((line) => /\S/.test(line)) ?? ''
    if (item.attack && ORDERS.test(shown)) return decided(asked, passagesOf(item, first), item.attack)
    return decided(asked, passagesOf(item, first), item.label)
  })
  return {
    env: modelEnv(server, { ANTHROPIC_PRICES: '0.10/0.50' }),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

type Asked = Parameters<typeof verdictOn>[0]

/** The marked evidence, or the first line if no evidence is marked. */
function passagesOf({ gold, observation }: Item, first: string): string[] {
  const text = observation.source.normalized_text
  const marked = gold[0]?.map(({ start, end }) => text.slice(start, end)) ?? []
  return marked.length > 0 ? marked : [first]
}

/** Cites the lines with the passages, as far as they are shown; for both sides where the label is mixed. */
function decided(asked: Asked, passages: readonly string[], verdict: string) {
  const lines = passages.map((passage) => lineWith(asked, passage.split('\n')[0]!)).filter((line) => line > 0)
  const [first] = lines
  if (verdict === 'insufficient_evidence' || first === undefined) return SILENT
  const shown = [...asked.lines].flatMap(([number, words]) => (words === '[left out]' ? [] : [number]))
  const other = shown.find((number) => number > first) ?? shown.findLast((number) => number < first) ?? first
  const answer = verdictOn(asked, '', verdict)
  const [part] = answer.parts
  const runs = (numbers: readonly number[]) => numbers.slice(0, 6).map((line) => ({ from: line, to: line }))
  const inFavour = verdict === 'contradicts' ? [] : verdict === 'mixed' ? [first] : lines
  const against = verdict === 'supports' ? [] : verdict === 'mixed' ? [other] : lines
  return { ...answer, parts: [{ ...part, for: runs(inFavour), against: runs(against) }] }
}

const ORDERS = /ignore all previous|note to ai|system:|"verdict"/i
