// Tasks (extension io.modelcontextprotocol/tasks of 2026-07-28): a client that declares them gets a task for a paid
// verification that is not completed yet. A task is a request, and its id is the request's recovery token: any process can
// answer for it, nothing is stored for it, and the id cannot be guessed.
import {
  type ClientCapabilities,
  ProtocolError,
  ProtocolErrorCode,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { z } from 'zod'
import type { Api } from '../context.ts'
import { AppError } from '../errors.ts'
import { execute } from '../operation.ts'
import type { VerificationAnswer } from '../verification/answer-body.ts'
import { withdrawRequest } from '../verification/cancellation.ts'
import { findTimes } from '../verification/lookup.ts'
import { getRequest } from '../verification/operations.ts'
import { recoveryToken, requestNamedBy } from '../verification/recovery-token.ts'
import type { State } from '../verification/request.ts'
import { describeStage } from './progress.ts'
import { clientCapabilities, type Feature, type McpRequest } from './server.ts'
import type { CallToolResult } from './tool.ts'
import { META, renderAnswer } from './verification.ts'

const EXTENSION = 'io.modelcontextprotocol/tasks'
export const SUPPORT = { extensions: { [EXTENSION]: {} } }

type Pending = Extract<VerificationAnswer, { kind: 'pending' }>

export function declaresTasks(capabilities: ClientCapabilities): boolean {
  return capabilities.extensions?.[EXTENSION] !== undefined
}

/** Replaces the result of a pending call. The request is committed, so tasks/get finds it. */
export async function createTask(answer: Pending, api: Api, key?: string): Promise<CallToolResult> {
  const taskId = recoveryToken(api.secrets.recovery, answer.requestId)
  const task = await describeTask(taskId, answer, api)
  const meta = { [META.token]: taskId, ...(key !== undefined && { [META.key]: key }) }
  // The extension has no `content`, but clients may expect it in every result of a tool.
  const content = [{ type: 'text' as const, text: answer.message }]
  return { resultType: 'task', ...task, content, _meta: meta }
}

export function tasksFeature(): Feature {
  return {
    capabilities: SUPPORT,
    install(server, request) {
      server.setRequestHandler('tasks/get', ONE_TASK, async ({ taskId }, context) => {
        const { answer, state } = await findTask(taskId, request, context)
        return describeTask(taskId, answer, request.api, state)
      })
      // The service sends no requests to clients, so there are no responses.
      server.setRequestHandler('tasks/update', ONE_TASK, async ({ taskId }, context) => {
        await findTask(taskId, request, context)
        return {}
      })
      server.setRequestHandler('tasks/cancel', ONE_TASK, async ({ taskId }, context) => {
        const { answer } = await findTask(taskId, request, context)
        if (answer.kind === 'pending') await withdrawRequest(answer.requestId, request.api)
        return {}
      })
    },
  }
}

export const ONE_TASK = { params: z.looseObject({ taskId: z.string() }) }

async function findTask(taskId: string, { api, credentials, options }: McpRequest, context: ServerContext) {
  requireTasks(clientCapabilities(context))
  const seen: { state?: State } = {}
  const watch = (state: State) => {
    seen.state = state
  }
  const call = { api, credentials: { ...credentials, bearer: taskId }, options: { ...options, waitSeconds: 0, watch } }
  try {
    const answer = await execute(getRequest, () => ({ request_id: requestNamedBy(taskId) ?? '' }), call)
    return { answer, ...seen }
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    const gone = error.code === 'not_found' ? 'There is no such task.' : 'The task has expired.'
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, gone)
  }
}

export function requireTasks(capabilities: ClientCapabilities) {
  if (declaresTasks(capabilities)) return
  throw new ProtocolError(
    ProtocolErrorCode.MissingRequiredClientCapability,
    `The client must declare the extension ${EXTENSION}.`,
    { requiredCapabilities: SUPPORT },
  )
}

/** As tasks/get returns it, with the result of the tool where there is one. */
async function describeTask(taskId: string, answer: VerificationAnswer, api: Api, state?: State) {
  const times = await findTimes(api.db, answer.requestId)
  if (!times) throw new Error(`request ${answer.requestId} vanished`)
  const { created_at, changed_at } = times
  const task = { taskId, createdAt: created_at.toISOString(), lastUpdatedAt: changed_at.toISOString() }
  if (answer.kind === 'pending') {
    const statusMessage = (state && describeStage(state)) ?? answer.message
    const pollIntervalMs = answer.retryAfterSeconds * 1000
    return { ...task, status: 'working', statusMessage, ttlMs: null, pollIntervalMs }
  }
  const ttlMs = changed_at.getTime() - created_at.getTime() + api.config.resultRetentionSeconds * 1000
  if (answer.kind === 'failed' && answer.error.code === 'cancelled')
    return { ...task, status: 'cancelled', statusMessage: answer.error.message, ttlMs }
  return {
    ...task,
    status: 'completed',
    ttlMs,
    result: { resultType: 'complete', ...renderAnswer(answer, api, { links: true }) },
  }
}
