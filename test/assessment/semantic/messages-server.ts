// A scripted server of the Messages API and of the chat completions API over real HTTP, and a parser of the prompts that it receives.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { TRIAL } from '../../../workers/assessment/semantic/model.ts'

/** A prompt as it arrived, split into the parts that it was built from. */
export interface Asked {
  body: Record<string, unknown>
  headers: IncomingMessage['headers']
  path: string
  /** Lines shown, by number. */
  lines: Map<number, string>
  claim: string
  /** Whether the claim or any line is left out. */
  isMasked: boolean
}

/** How to answer a call: with an object, with raw text, or by a function. */
export type Reply = object | string | ((asked: Asked, response: ServerResponse) => void | Promise<void>)
export type Script = (asked: Asked, count: number) => Reply | Promise<Reply>

export interface MessagesServer extends AsyncDisposable {
  url: string
  asked: Asked[]
  /** Replaces the script. */
  script: Script
  /** The reply to the service's own question (workers/assessment/semantic/model.ts); null: a right answer. It is not in `asked`. */
  trial: Reply | null
  /** How often that question came. */
  trials: number
}

export async function openMessagesServer(script: Script): Promise<MessagesServer> {
  const asked: Asked[] = []
  const server = createServer(async (request, response) => {
    // `doctor` looks only whether a server answers.
    if (request.method !== 'POST') return void response.writeHead(405).end()
    const question = readQuestion(await readBody(request), request)
    const isTrial = JSON.stringify(question.body).includes(JSON.stringify(TRIAL.page).slice(1, -1))
    if (isTrial) self.trials++
    else asked.push(question)
    const reply = isTrial ? (self.trial ?? rightTrial) : await self.script(question, asked.length)
    if (typeof reply === 'function') await reply(question, response)
    else answer(response, reply)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const self: MessagesServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    script,
    trial: null,
    trials: 0,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }
  return self
}

const rightTrial: Reply = (asked, response) =>
  answer(response, verdictOn(asked, '21 metres', 'supports'), { usage: { input_tokens: 0, output_tokens: 0 } })

/** The settings that point a service at it. */
export function modelEnv(server: { url: string }, more: Record<string, string> = {}): Record<string, string> {
  return {
    ASSESSMENT: 'auto',
    ANTHROPIC_API_KEY: 'test-key',
    ANTHROPIC_BASE_URL: server.url,
    ANTHROPIC_MODEL: 'scripted-1',
    ASSESSMENT_SECOND_READER: 'none',
    ...more,
  }
}

/** A whole message with this answer, or with this text in place of one. */
export function answer(response: ServerResponse, written: object | string, more: Record<string, unknown> = {}) {
  const text = typeof written === 'string' ? written : JSON.stringify(written)
  send(response, 200, response.req.url?.endsWith('/chat/completions') ? completion(text, more) : message(text, more))
}

/** The same of the chat completions API. */
export function completion(content: string, more: Record<string, unknown> = {}) {
  return {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    model: 'scripted-1',
    choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 },
    ...more,
  }
}

export function message(text: string, more: Record<string, unknown> = {}) {
  return {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'scripted-1',
    content: [
      { type: 'thinking', thinking: '', signature: 'x' },
      { type: 'text', text },
    ],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 100, output_tokens: 20, cache_creation_input_tokens: 1000, cache_read_input_tokens: 0 },
    ...more,
  }
}

/** The API's own form of an error. */
export function refuse(
  status: number,
  type: string,
  headers: Record<string, string> = {},
  message: string = type,
): Reply {
  return (_asked, response) => send(response, status, { type: 'error', error: { type, message } }, headers)
}

function send(response: ServerResponse, status: number, body: object, headers: Record<string, string> = {}) {
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
  response.end(JSON.stringify(body))
}

async function readBody(request: IncomingMessage): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return JSON.parse(Buffer.concat(chunks).toString('utf8'))
}

function readQuestion(body: Record<string, unknown>, { headers, url }: IncomingMessage): Asked {
  const messages = body.messages as { role: string; content: string | { text: string }[] }[]
  const said = messages.find(({ role }) => role === 'user')?.content ?? ''
  const whole = typeof said === 'string' ? said : said.map(({ text }) => text).join('\n\n')
  const lines = new Map<number, string>()
  for (const line of whole.split('\n')) {
    const match = /^[0-9a-f]{4}-(\d+)\| (.*)$/su.exec(line)
    if (match) lines.set(Number(match[1]), match[2]!)
  }
  const claim = /claim begins\]\n(.*)\n\[[0-9a-f]+ claim ends\]/su.exec(whole)?.[1] ?? ''
  const isMasked = claim.includes('[left out]') || [...lines.values()].includes('[left out]')
  return { body, headers, path: url ?? '', lines, claim, isMasked }
}

/** The number of the first line shown that has these words; 0, which is no line, if none has. */
export function lineWith(asked: Asked, words: string): number {
  for (const [number, line] of asked.lines) if (line.includes(words)) return number
  return 0
}

/** An answer whose only part is the claim, decided by the line that has these words. */
export function verdictOn(asked: Asked, words: string, verdict: string, status = STATUSES[verdict] ?? 'silent') {
  const line = lineWith(asked, words)
  const run = [{ from: line, to: line }]
  return {
    parts: [
      {
        part: asked.claim,
        for: verdict === 'contradicts' ? [] : run,
        against: verdict === 'supports' || verdict === 'insufficient_evidence' ? [] : run,
        status,
      },
    ],
    suspicious: [] as number[],
  }
}

const STATUSES: Readonly<Record<string, string>> = { supports: 'stated', contradicts: 'opposite', mixed: 'conflict' }

export const SILENT = { parts: [{ part: '', for: [], against: [], status: 'silent' }], suspicious: [] as number[] }
