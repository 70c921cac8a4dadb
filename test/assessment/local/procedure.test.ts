// What surrounds the model: sentences, words, windows, arithmetic, language, aggregate. A scripted model answers by the text.
import t from 'tap'
import { exp, log, rounded, softmax } from '../../../workers/assessment/local/arithmetic.ts'
import { assessLocally } from '../../../workers/assessment/local/assessment.ts'
import { graphOf } from '../../../workers/assessment/local/graph.ts'
import type { Verifier } from '../../../workers/assessment/local/verifier.ts'
import { settings } from '../../../workers/assessment/local/weights.ts'
import { chooseWindows, sentencesOf } from '../../../workers/assessment/local/windows.ts'
import {
  isEnglish,
  isKnownLanguage,
  isWordCharacter,
  termsOf,
  wordsOf,
} from '../../../workers/assessment/local/words.ts'

/** Says what its passage says: SUPPORT, DENY, MAYBE; otherwise nothing. */
const scripted: Verifier = {
  settings,
  async logits(_claim, passage) {
    if (passage.includes('SUPPORT')) return [6, 0, 0]
    if (passage.includes('DENY')) return [0, 6, 0]
    return passage.includes('MAYBE') ? [1.5, 0, 0] : [0, 0, 6]
  },
  async [Symbol.asyncDispose]() {},
}
const CLAIM = 'The bridge was opened by the mayor in the spring.'

t.test('exp and log agree with the exact values to the last digits', async (t) => {
  for (let i = 0; i < 5000; i++) {
    const x = -40 * Math.abs(Math.sin(i))
    if (Math.abs(exp(x) / Math.exp(x) - 1) > 1e-14) t.fail(`exp ${x}`)
    const y = 1 + 1e5 * Math.sin(i) ** 8
    if (Math.abs(log(y) - Math.log(y)) > 1e-13) t.fail(`log ${y}`)
  }
  t.same([exp(0), log(1), exp(-1000)], [1, 0, 0])
  t.equal(rounded(softmax([3, 1, 2]).reduce((sum, p) => sum + p, 0)), 1)
})

t.test('words have the characters of the listed version of Unicode', async (t) => {
  const sameVersion = process.versions.unicode === '17.0'
  let [missing, surplus] = [0, 0]
  for (let codePoint = 0; codePoint <= 0x10ffff; codePoint++) {
    if (codePoint >= 0xd800 && codePoint < 0xe000) continue
    const here = /[\p{L}\p{N}_]/u.test(String.fromCodePoint(codePoint))
    if (isWordCharacter(codePoint) && !here) surplus++
    if (here && !isWordCharacter(codePoint)) missing++
  }
  t.ok(sameVersion ? missing === 0 && surplus === 0 : Math.min(missing, surplus) === 0, `${missing} ${surplus}`)
  t.same(wordsOf("It's 5 naïve ÉCOLES_2, 𝒳y"), ["it's", '5', 'naïve', 'écoles_2', '𝒳y'])
  t.same(termsOf('The lighthouses of Kelby and 𝒳𝒳𝒳𝒳𝒳𝒳𝒳'), ['lighth', 'kelby', '𝒳𝒳𝒳𝒳𝒳𝒳'])
})

t.test('sentences keep their places', async (t) => {
  const text = '  Dr. Moor came. It rained!  "Why?" she said. version 2.0 is out\n\n. \nEnd'
  const found = sentencesOf(text)
  for (const one of found) t.equal(text.slice(one.start, one.end), one.text)
  t.same(
    found.map((one) => one.text),
    ['Dr.', 'Moor came.', 'It rained!', '"Why?" she said. version 2.0 is out', '.', 'End'],
  )
})

t.test('windows: the nearest first, with neighbours, the title in front, at most six', async (t) => {
  const text = [
    'Title of the page',
    ...Array.from({ length: 40 }, (_, i) => `Sentence ${i} is here.`),
    'A bridge.',
  ].join('\n')
  const windows = chooseWindows(sentencesOf(text), 'The bridge', settings.windows)
  t.equal(windows.length, 6)
  t.equal(windows[0]?.text, 'Title of the page. Sentence 39 is here. A bridge.')
  t.same(
    windows.slice(1).map(({ index }) => index),
    [0, 1, 2, 3, 4],
    'equal scores in the order of the text',
  )
  const long = `${'word '.repeat(95).trim()}.`
  const [wide] = chooseWindows(sentencesOf(`Before it.\n${long} bridge\nAfter it.`), 'The bridge', settings.windows)
  t.same([wide?.from, wide?.to], [1, 1], 'a sentence that fills the window has no neighbours')
  t.same(chooseWindows([], CLAIM, settings.windows), [])
})

t.test('the verdict follows from the largest probabilities', async (t) => {
  const filler = 'The mayor likes the spring.'
  const read = async (...lines: string[]) => {
    const found = await assessLocally(scripted, ['A title', ...lines].join('\n'), CLAIM)
    return [
      found.claim_support,
      found.reading.lean,
      found.quotes.map(({ quote, stance }) => [quote, stance]),
      found.risk_flags,
    ]
  }
  const [yes, no, maybe] = ['It was SUPPORT in spring.', 'The mayor DENY it.', 'The bridge MAYBE opened.']
  t.same(await read(yes), ['supports', null, [[yes, 'supports']], []])
  t.same(await read(no), ['contradicts', null, [[no, 'contradicts']], []])
  t.same(await read(maybe), ['insufficient_evidence', 'supports', [[maybe, 'mentions']], []])
  t.same(await read(filler), ['insufficient_evidence', null, [[filler, 'mentions']], []])
  const far = Array.from({ length: 4 }, () => 'Nothing of it here.')
  t.match(await read(yes, ...far, no), [
    'mixed',
    null,
    [
      [yes, 'supports'],
      [no, 'contradicts'],
    ],
    [],
  ])
  t.match(await read('A fact check of the week.', yes), [
    'insufficient_evidence',
    'supports',
    [[yes, 'mentions']],
    ['page_checks_claims'],
  ])
  t.match(await read('A fact check of the week.', no), ['contradicts', null, [[no, 'contradicts']], []])
})

t.test('the model reads each passage once, however often windows and quotes need it', async (t) => {
  const asked: string[] = []
  const counting: Verifier = {
    ...scripted,
    logits(claim, passage) {
      asked.push(passage)
      return scripted.logits(claim, passage)
    },
  }
  const lines = ['The bridge SUPPORT.', 'The mayor came in the spring.', 'The bridge DENY.', 'Opened by the mayor.']
  for (const text of [lines.join('\n'), lines[0]!, lines.slice(0, 2).join('\n')]) {
    asked.length = 0
    await assessLocally(counting, text, CLAIM)
    t.same(asked, [...new Set(asked)])
    t.ok(lines.filter((line) => text.includes(line)).every((line) => asked.some((passage) => passage.includes(line))))
  }
})

t.test('every explanation fits, names the verifier, and says how often such a judgement was right', async (t) => {
  const claim = `The bridge ${'and the mayor '.repeat(140)}`
  const sentence = `SUPPORT ${'the bridge of the mayor in the spring '.repeat(60)}`
  const found = await assessLocally(scripted, sentence, claim)
  t.ok([...found.explanation].length <= 800)
  t.match(found.explanation, /small model.*90 of 100 such verdicts were right/)
  const [quote] = found.quotes
  t.ok(quote && quote.end - quote.start <= 1000 && sentence.startsWith(quote.quote), 'a long quote is cut at a blank')
  t.match((await assessLocally(scripted, 'MAYBE the bridge.', CLAIM)).explanation, /leans.*65 were right/)
})

t.test('a quotation in an explanation ends with one mark', async (t) => {
  const both = `SUPPORT it was open. ${'Nothing here. '.repeat(9)}DENY it was open!`
  for (const [claim, text] of [
    ['It was open.', 'SUPPORT it was open.'],
    ['It was open', 'SUPPORT it was open'],
    ['It was open?', 'DENY “it was open.”'],
    ['It was open.', both],
    ['It was open.', 'Nothing.'],
  ] as const) {
    const { explanation } = await assessLocally(scripted, text, claim)
    t.match(explanation, /^The claim is “It was open[.?]?”\.? (?:The page says|The nearest sentence)/)
    t.notMatch(explanation, /[.!?]["”]*”\.|[^.!?”]” [A-Z]/, explanation)
  }
})

t.test('a language that the verifier does not know gets no verdict', async (t) => {
  const german =
    'SUPPORT Die Brücke wurde im Frühjahr vom Bürgermeister eröffnet, und sie ist nicht mehr für Lastwagen frei.'
  const found = await assessLocally(scripted, german, CLAIM)
  t.match(found, { claim_support: 'insufficient_evidence', risk_flags: ['language_not_supported'], quotes: [] })
  for (const text of [
    'Мост был открыт мэром весной, и он больше не открыт для грузовиков.',
    'この橋は春に市長によって開通しました。',
    'Il ponte è stato aperto dal sindaco nella primavera e non è più aperto ai camion.',
    'El puente fue inaugurado por el alcalde en la primavera y ya no está abierto para los camiones.',
  ])
    t.equal(isEnglish(text), false, text)
  for (const text of [CLAIM, '', '42', 'Smith et al. studied AI in Los Angeles and El Paso.', 'Berlin: 3.6 million'])
    t.equal(isEnglish(text), true, text)
  t.equal(isKnownLanguage('Berlin 1990', 'Die Stadt ist seit 1990 die Hauptstadt und nicht mehr geteilt.'), false)
})

t.test('the graph of a model refers to the tensors that it leaves out', async (t) => {
  const tensor = [0x4a, 0x80, 0x10, ...Array.from({ length: 2048 }, (_, i) => i & 255)]
  const initializer = [0x2a, ...varint(tensor.length), ...tensor]
  const model = Uint8Array.from([0x08, 0x08, 0x3a, ...varint(initializer.length), ...initializer])
  const graph = Buffer.from(graphOf(model, 'w')).toString('latin1')
  t.ok(graph.length < 100)
  t.match(graph, `offset\x12\x02${model.length - 2048}`)
  t.match(graph, 'length\x12\x042048')
  t.throws(() => graphOf(model.subarray(0, 1000), 'w'), RangeError)
})

const varint = (n: number) => (n < 128 ? [n] : [(n & 127) | 128, n >> 7])
