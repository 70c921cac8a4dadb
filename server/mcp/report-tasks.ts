// Checks of reports as tasks (see tasks.ts): the report is stored, and its id, which cannot be guessed, is the id of the task. Any
// process goes on with it when it is asked for.
import { ProtocolError, ProtocolErrorCode, type ServerContext } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { AppError } from '../errors.ts'
import { dropReport, findReport, REPORT_KEPT_MS, type StoredReport } from '../quotes/address-checks.ts'
import { describeProgress, refusal, renderReport } from './check-answers.ts'
import { checkReport } from './report-check.ts'
import { clientCapabilities, type Feature, type McpRequest } from './server.ts'
import { ONE_TASK, requireTasks, SUPPORT } from './tasks.ts'
import type { CallToolResult } from './tool.ts'

/** Milliseconds for which one look at a task goes on with it. */
const LOOK_MS = 1000
const POLL_MS = 2000

/** Replaces the result of a call. The check begins with the first look at it. */
export function createReportTask(report: StoredReport): CallToolResult {
  const statusMessage = 'The report is stored. Its pages are being checked.'
  const content = [{ type: 'text' as const, text: statusMessage }]
  return { resultType: 'task', ...working(report, statusMessage), content }
}

export function reportTasksFeature(): Feature {
  return {
    capabilities: SUPPORT,
    install(server, request) {
      server.setRequestHandler('tasks/get', ONE_TASK, async ({ taskId }, context) =>
        describe(await find(taskId, request, context), request),
      )
      server.setRequestHandler('tasks/update', ONE_TASK, async ({ taskId }, context) => {
        await find(taskId, request, context)
        return {}
      })
      server.setRequestHandler('tasks/cancel', ONE_TASK, async ({ taskId }, context) => {
        const { id } = await find(taskId, request, context)
        await dropReport(request.api.db, id)
        return {}
      })
    },
  }
}

async function find(taskId: string, { api }: McpRequest, context: ServerContext): Promise<StoredReport> {
  requireTasks(clientCapabilities(context))
  const report = z.uuid().safeParse(taskId).success ? await findReport(api.db, taskId) : null
  if (!report) throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'There is no such task.')
  return report
}

function working(report: StoredReport, statusMessage: string) {
  return { ...times(report), status: 'working' as const, statusMessage, pollIntervalMs: POLL_MS }
}

function times({ id, created_at }: StoredReport) {
  const createdAt = created_at.toISOString()
  return { taskId: id, createdAt, lastUpdatedAt: createdAt, ttlMs: REPORT_KEPT_MS }
}

async function describe(report: StoredReport, request: McpRequest) {
  try {
    const check = await checkReport(report.markdown, request, { wait: LOOK_MS, owner: report.owner_id })
    if (!check.outcome) return working(report, describeProgress(check.done, check.pages))
    return completed(report, await renderReport(check, request))
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    return completed(report, refusal(error))
  }
}

function completed(report: StoredReport, result: CallToolResult) {
  return { ...times(report), status: 'completed' as const, result: { resultType: 'complete', ...result } }
}
