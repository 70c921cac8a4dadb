// A recorded call as code to copy, for a shell, in TypeScript and in Python, and its answer as text. Credentials are variables of the
// environment.
import type { Operation } from '../../operation.ts'
import { A_FILE, type Example } from '../examples/examples.ts'

/** The path of a recorded call, percent-encoded. A plus sign is encoded too, because some programs read it as a space. */
export function pathOf({ path }: Example): string {
  return encodeURI(decodeURI(path)).replaceAll('+', '%2B')
}

/** @param baseUrl without a slash at its end */
export function callsIn(operation: Operation, example: Example, baseUrl: string): [language: string, text: string][] {
  const call = { method: operation.method, url: `${baseUrl}${pathOf(example)}`, ...example }
  return [
    ['curl', inShell(call)],
    ['TypeScript', inTypeScript(call)],
    ['Python', inPython(call)],
  ].map(([language = '', text = '']) => [language, text.replaceAll('{base_url}', baseUrl)])
}

interface Call extends Pick<Example, 'headers' | 'request'> {
  method: string
  url: string
}

/** How the examples name a credential, for example `$KEY`. */
const CREDENTIAL = /\$([A-Z]+)/g

function inShell({ method, url, headers, request }: Call): string {
  const lines = [`curl -X ${method} '${url}'`]
  // Double quotes, so that the shell puts in the credential.
  for (const [name, value] of Object.entries(headers)) lines.push(`-H "${name}: ${value}"`)
  if (typeof request === 'string') lines.push(`--data-binary ${quoted(request)}`)
  else if (request !== undefined) lines.push(`-d ${quoted(JSON.stringify(request, null, 2))}`)
  return lines.join(' \\\n  ')
}

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`

function inTypeScript({ method, url, headers, request }: Call): string {
  const named = Object.entries(headers).map(([name, value]) => `    '${name}': ${inTemplate(value)},`)
  const body =
    typeof request === 'string'
      ? JSON.stringify(request)
      : `JSON.stringify(${indented(JSON.stringify(request ?? null, null, 2), 2)})`
  const needsEnv = Object.values(headers).some((value) => value.includes('$'))
  const lines = [
    ...(needsEnv ? ["import { env } from 'node:process'", ''] : []),
    `const answer = await fetch('${url}', {`,
    `  method: '${method}',`,
    ...(named.length > 0 ? ['  headers: {', ...named, '  },'] : []),
    ...(request === undefined ? [] : [`  body: ${body},`]),
    '})',
    'console.log(answer.status, await answer.text())',
  ]
  return lines.join('\n')
}

const inTemplate = (value: string) =>
  value.includes('$') ? `\`${value.replace(CREDENTIAL, (_, name) => `\${env.${name}}`)}\`` : `'${value}'`

/** With the standard library alone, which raises an error for every status that is no success. */
function inPython({ method, url, headers, request }: Call): string {
  const named = Object.entries(headers).map(([name, value]) => `        "${name}": ${inFormat(value)},`)
  const body =
    typeof request === 'string'
      ? `${JSON.stringify(request)}.encode()`
      : `json.dumps(${indented(literal(request), 4)}).encode()`
  const lines = [
    `import ${['json', 'os']
      .filter((name) => (name === 'os' ? /\$/.test(JSON.stringify(headers)) : typeof request === 'object'))
      .concat('urllib.error', 'urllib.request')
      .join(', ')}`,
    '',
    'request = urllib.request.Request(',
    `    "${url}",`,
    `    method="${method}",`,
    ...(named.length > 0 ? ['    headers={', ...named, '    },'] : []),
    ...(request === undefined ? [] : [`    data=${body},`]),
    ')',
    'try:',
    '    answer = urllib.request.urlopen(request)',
    'except urllib.error.HTTPError as refused:',
    '    answer = refused',
    'print(answer.status, answer.read().decode())',
  ]
  return lines.join('\n')
}

const inFormat = (value: string) =>
  value.includes('$') ? `f"${value.replace(CREDENTIAL, "{os.environ['$1']}")}"` : JSON.stringify(value)

/** JSON as Python writes it. */
function literal(value: unknown, depth = 0): string {
  const space = '    '.repeat(depth + 1)
  const end = '    '.repeat(depth)
  if (value === null || value === undefined) return 'None'
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (typeof value !== 'object') return JSON.stringify(value)
  const parts = Array.isArray(value)
    ? value.map((item) => `${space}${literal(item, depth + 1)},\n`)
    : Object.entries(value).map(([name, member]) => `${space}${JSON.stringify(name)}: ${literal(member, depth + 1)},\n`)
  const [open, close] = Array.isArray(value) ? '[]' : '{}'
  return parts.length === 0 ? `${open}${close}` : `${open}\n${parts.join('')}${end}${close}`
}

const indented = (text: string, spaces: number) => text.replaceAll('\n', `\n${' '.repeat(spaces)}`)

/**
 * The body of the answer, with long texts and lists cut; null where there is none to read. Members without members of their own stand
 * first, so that the verdict of a result is seen at once.
 */
export function bodyIn({ body }: Example, baseUrl: string): string | null {
  if (body === null || body === A_FILE) return null
  const shown = typeof body === 'string' ? body : JSON.stringify(shorten(simpleFirst(body)), null, 2)
  return shown.replaceAll('{base_url}', baseUrl)
}

/** The headers of the answer that a caller needs, a line each; empty where there are none. */
export function headersIn({ answerHeaders }: Example, baseUrl: string): string {
  const lines = Object.entries(answerHeaders).map(([name, value]) => `${name}: ${value}`)
  return lines.join('\n').replaceAll('{base_url}', baseUrl)
}

const simpleFirst = (body: unknown) =>
  typeof body === 'object' && body !== null && !Array.isArray(body)
    ? Object.fromEntries(Object.entries(body).sort(([, a], [, b]) => Number(isLong(a)) - Number(isLong(b))))
    : body
/** Whether a member takes several lines. */
const isLong = (value: unknown) => typeof value === 'object' && value !== null && Object.keys(value).length > 0

const MAX_TEXT = 140
/** Of a text without spaces: a digest, a signature, a token. */
const MAX_WORD = 48
const SHOWN_OF_WORD = 32
const MAX_ITEMS = 3
/** Members that hold a schema: the tables beside the example say the same. */
const SCHEMAS = new Set(['input_schema', 'output_schema'])

function cut(text: string): string {
  const [most, shown] = /\s/.test(text) ? [MAX_TEXT, MAX_TEXT] : [MAX_WORD, SHOWN_OF_WORD]
  return text.length > most ? `${text.slice(0, shown)}…` : text
}

/** The value with long texts and lists cut. */
function shorten(value: unknown): unknown {
  if (typeof value === 'string') return cut(value)
  if (Array.isArray(value)) {
    const rest = value.length - MAX_ITEMS
    return [...value.slice(0, MAX_ITEMS).map(shorten), ...(rest > 0 ? [`… ${rest} more`] : [])]
  }
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, SCHEMAS.has(name) ? '…' : shorten(member)]),
  )
}
