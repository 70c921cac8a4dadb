// Tasks (extension io.modelcontextprotocol/tasks of 2026-07-28): a paid verification that is not done yet, handed to a client
// that can come back for it. A task is a request and its id the request's recovery token, so any process can answer for
// it, nothing is stored for it, and nobody can guess it.
import {
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  ProtocolError,
  ProtocolErrorCode,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { z } from 'zod'
import type { Api } from '../context.ts'
import { AppError } from '../errors.ts'
import { execute } from '../operation.ts'
import type { VerificationAnswer } from '../verification/answer.ts'
import { withdrawRequest } from '../verification/cancellation.ts'
import { findTimes } from '../verification/lookup.ts'
import { getRequest } from '../verification/operations.ts'
import { recoveryToken, requestNamedBy } from '../verification/recovery-token.ts'
import type { State } from '../verification/request.ts'
import { META, renderResult } from './answers.ts'
import type { Exchange, Feature } from './server.ts'
import { describeStage } from './stages.ts'
import type { CallToolResult } from './tool.ts'

const EXTENSION = 'io.modelcontextprotocol/tasks'
const SUPPORT = { extensions: { [EXTENSION]: {} } }

type Pending = Extract<VerificationAnswer, { kind: 'pending' }>

export function declaresTasks(capabilities: ClientCapabilities): boolean {
  return capabilities.extensions?.[EXTENSION] !== undefined
}

/** In place of the tool's result, which is not there yet. The request is committed: asking for the task finds it. */
export async function createTask(answer: Pending, api: Api, key?: string): Promise<CallToolResult> {
  const taskId = recoveryToken(api.secrets.recovery, answer.requestId)
  const task = await describeTask(taskId, answer, api)
  const meta = { [META.token]: taskId, ...(key !== undefined && { [META.key]: key }) }
  // `content` is not the extension's, but what every client may look for in a result of a tool.
  const content = [{ type: 'text' as const, text: answer.message }]
  return { resultType: 'task', ...task, content, _meta: meta }
}

export function tasksFeature(): Feature {
  return {
    capabilities: SUPPORT,
    install(server, exchange) {
      server.setRequestHandler('tasks/get', ONE_TASK, async ({ taskId }, context) => {
        const { answer, state } = await findTask(taskId, exchange, context)
        return describeTask(taskId, answer, exchange.api, state)
      })
      // Nothing is ever asked of a client, so there is nothing an answer could be for.
      server.setRequestHandler('tasks/update', ONE_TASK, async ({ taskId }, context) => {
        await findTask(taskId, exchange, context)
        return {}
      })
      server.setRequestHandler('tasks/cancel', ONE_TASK, async ({ taskId }, context) => {
        const { answer } = await findTask(taskId, exchange, context)
        if (answer.kind === 'pending') await withdrawRequest(answer.requestId, exchange.api)
        return {}
      })
    },
  }
}

const ONE_TASK = { params: z.looseObject({ taskId: z.string() }) }

async function findTask(taskId: string, { api, credentials }: Exchange, { mcpReq }: ServerContext) {
  requireTasks(mcpReq.envelope)
  const seen: { state?: State } = {}
  const watch = (state: State) => {
    seen.state = state
  }
  const call = { api, credentials: { ...credentials, bearer: taskId, waitSeconds: 0, watch } }
  try {
    const answer = await execute(getRequest, () => ({ request_id: requestNamedBy(taskId) ?? '' }), call)
    return { answer: answer as VerificationAnswer, ...seen }
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    const gone = error.code === 'not_found' ? 'There is no such task.' : 'The task has expired.'
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, gone)
  }
}

function requireTasks(envelope: unknown) {
  const declared = envelope as { [CLIENT_CAPABILITIES_META_KEY]?: ClientCapabilities } | undefined
  if (declaresTasks(declared?.[CLIENT_CAPABILITIES_META_KEY] ?? {})) return
  throw new ProtocolError(
    ProtocolErrorCode.MissingRequiredClientCapability,
    `The client has to declare the extension ${EXTENSION}.`,
    { requiredCapabilities: SUPPORT },
  )
}

/** As tasks/get has it, with the result that the tool would have given where there is one. */
async function describeTask(taskId: string, answer: VerificationAnswer, api: Api, state?: State) {
  const times = await findTimes(api.db, answer.requestId)
  if (!times) throw new Error(`request ${answer.requestId} vanished`)
  const { created_at, changed_at } = times
  const task = { taskId, createdAt: created_at.toISOString(), lastUpdatedAt: changed_at.toISOString() }
  if (answer.kind === 'pending') {
    const seconds = Number(renderResult(answer, api)._meta?.[META.retryAfter])
    const statusMessage = (state && describeStage(state)) ?? answer.message
    return { ...task, status: 'working', statusMessage, ttlMs: null, pollIntervalMs: seconds * 1000 }
  }
  const ttlMs = changed_at.getTime() - created_at.getTime() + api.config.resultRetentionSeconds * 1000
  if (answer.kind === 'failed' && answer.error.code === 'cancelled')
    return { ...task, status: 'cancelled', statusMessage: answer.error.message, ttlMs }
  return { ...task, status: 'completed', ttlMs, result: { resultType: 'complete', ...renderResult(answer, api) } }
}
