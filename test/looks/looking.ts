// How tests ask for free looks.
import type { NonCompleted } from '../../server/interface/result.ts'
import type { LookResult } from '../../server/looks/look.ts'

export interface Looked {
  status: number
  headers: Headers
  text: string
  body: LookResult & NonCompleted
}

/** POSTs to /try. @param service only its `url` is used */
export async function look(
  { url }: { url(path: string): string },
  body: unknown,
  headers: Record<string, string> = {},
): Promise<Looked> {
  const response = await fetch(url('/try'), {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  const text = await response.text()
  const isJson = response.headers.get('content-type')?.startsWith('application/json')
  return { status: response.status, headers: response.headers, text, body: isJson ? JSON.parse(text) : null }
}

/** The parsed lines of an answer in lines. */
export const linesOf = ({ text }: Looked) =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))

/** The end of a look: a call waits for it only for so long, and the same call again joins it. */
export async function lookToEnd(...call: Parameters<typeof look>): Promise<Looked> {
  for (;;) {
    const looked = await look(...call)
    if (looked.status !== 202) return looked
  }
}
