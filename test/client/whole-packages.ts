// Whole evidence packages of which one part is large, and the replay of them, for the rule of test/readers.test.ts.
import { LIMITS } from '../../server/interface/limits.ts'
import { type Forgery, issuePackage } from './package-issuer.ts'
import type { Part } from './package-parts.ts'
import { replay, verdict } from './replayed.ts'

/** Before the blank line that ends a head. */
const withFields = (head: Buffer, fields: string) => Buffer.concat([head.subarray(0, -2), Buffer.from(`${fields}\r\n`)])
/** A page has no more markup. */
const MOST_PARAGRAPHS = 5000
/** An archive inflates to no more, the other records included. */
const MOST_INFLATED = 16_777_216
const FILES = 150

const lines = (line: string, size: number) => line.repeat(Math.ceil(size / line.length))

/** What makes a part as long as the text, and whether the service could have made such a package. */
const FORGERIES: Readonly<Record<Part, { isHonest: boolean; of(text: string): Forgery }>> = {
  'a comment of the page': {
    isHonest: true,
    of: (text) => ({ tail: `<!--${lines('word ', Math.min(text.length, LIMITS.decodedBytes / 2))}-->` }),
  },
  'paragraphs of the page': {
    isHonest: true,
    of: (text) => ({ tail: '<p>x</p>'.repeat(Math.min(text.length / 8, MOST_PARAGRAPHS)) }),
  },
  'the body of a redirect': {
    isHonest: true,
    of: (text) => ({
      hops: ([first]) => {
        first!.body = Buffer.from(text.slice(0, MOST_INFLATED))
      },
    }),
  },
  'a field of a response': {
    isHonest: true,
    of: (text) => ({
      hops: ([first]) => {
        first!.head = withFields(first!.head, `X-Long: ${text.slice(0, MOST_INFLATED)}\r\n`)
      },
    }),
  },
  'fields of a response': {
    isHonest: true,
    of: (text) => ({
      hops: ([first]) => {
        first!.head = withFields(first!.head, lines('a: b\r\n', Math.min(text.length, MOST_INFLATED)))
      },
    }),
  },
  'a file beside the archive': {
    isHonest: true,
    of: (text) => ({ files: (files) => void files.set('more/file', Buffer.from(text)) }),
  },
  'files beside the archive': {
    isHonest: true,
    of: (text) => ({
      files(files) {
        const part = Buffer.from(text.slice(0, text.length / FILES))
        for (let i = 0; i < FILES; i++) files.set(`more/file${i}`, part)
      },
    }),
  },
  'an OCSP response': {
    isHonest: false,
    of: (text) => ({
      connections([first]) {
        const { tls } = first as { tls: Record<string, unknown> }
        tls.ocsp_response = Buffer.from(text.slice(0, text.length / 2)).toString('base64')
      },
    }),
  },
  'lines of the index': {
    isHonest: false,
    of: (text) => ({ files: (files) => appendLines(files, 'indexes/index.cdx', text.length) }),
  },
  'lines of the list of pages': {
    isHonest: false,
    of: (text) => ({ files: (files) => appendLines(files, 'pages/pages.jsonl', text.length) }),
  },
  'an explanation': {
    isHonest: false,
    of: (text) => ({
      result(draft) {
        draft.explanation = text
      },
    }),
  },
}

/** The last line again and again. */
function appendLines(files: Map<string, Buffer>, name: string, size: number) {
  const text = files.get(name)!.toString()
  const last = `${text.trimEnd().split('\n').at(-1)}\n`
  files.set(name, Buffer.from(text + lines(last, size)))
}

/** Makes and replays a package. @param input the name of a part, a line break, and a text of the length that the part has */
export async function replayWhole(input: string): Promise<void> {
  const end = input.indexOf('\n')
  const part = input.slice(0, end) as Part
  const { isHonest, of } = FORGERIES[part]
  const { ok, steps } = await replay(issuePackage(verdict, of(input.slice(end + 1))))
  // A replay that ends early would do less work than it may.
  if (isHonest && !ok) throw new Error(`${part}: ${JSON.stringify(steps.filter((step) => !step.ok))}`)
}
