// Starts and stops a process: what it opened is closed in reverse order after a signal, when a part of it fails,
// and when it cannot start. A drain that takes too long is ended before the SIGKILL of the platform at 30 s.

import { ConfigError } from './config.ts'
import type { Logger } from './telemetry.ts'

export interface Running {
  log: Logger
  /** Rejects when an essential part has failed. */
  died?: Promise<never>
  /** Called when the process is asked to stop, before anything is closed. */
  stopping?: () => void
}

/** SIGHUP comes when a terminal is closed. */
const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const
const HARD_STOP_MS = 29_000
/**
 * Milliseconds in which a further signal repeats the first. A terminal and a platform such as Heroku signal every process of a group,
 * and npm, which gets the signal too, sends it to its child once more.
 */
const REPEAT_MS = 1000
/** Milliseconds after the drain in which the process may end by itself. */
const END_MS = 500

/** Runs `start` and waits for SIGTERM, SIGINT, SIGHUP or a failure. Exits 0 after a drain, else 1. */
export async function runProcess(start: (opened: AsyncDisposableStack) => Promise<Running>): Promise<void> {
  const opened = new AsyncDisposableStack()
  const stop = Promise.withResolvers<string>()
  const boundEnd = onceOnly(endSoon)
  const onSignal = (signal: string) => {
    stop.resolve(signal)
    boundEnd()
  }
  // `on`, because a listener that is taken away leaves a moment in which the next signal ends the process.
  for (const signal of SIGNALS) process.on(signal, onSignal)
  let log: Logger | undefined
  try {
    const running = await start(opened)
    log = running.log
    const reason = await Promise.race([stop.promise, running.died ?? stop.promise])
    log.info({ event: 'stopping', reason })
    running.stopping?.()
  } catch (error) {
    process.exitCode = 1
    report(error, log)
  }
  boundEnd()
  try {
    await opened.disposeAsync()
  } catch (error) {
    process.exitCode = 1
    report(error, log)
  }
  log?.info({ event: 'stopped' })
  // A call of a job that was left behind, as to a facilitator that does not answer, would keep the process alive for up to a minute.
  setTimeout(() => process.exit(), END_MS).unref()
}

/**
 * From here on another signal that is not a repetition, or the deadline, ends the process at once: committed work is safe, and another
 * worker takes over the rest. A process that does not get through its start ends in this way too.
 */
function endSoon() {
  const begun = performance.now()
  const insist = () => {
    if (performance.now() - begun > REPEAT_MS) process.exit(1)
  }
  for (const signal of SIGNALS) process.on(signal, insist)
  setTimeout(() => process.exit(1), HARD_STOP_MS).unref()
}

function onceOnly(run: () => void): () => void {
  let isDone = false
  return () => {
    if (!isDone) run()
    isDone = true
  }
}

function report(error: unknown, log: Logger | undefined) {
  if (error instanceof ConfigError) console.error(error.message)
  else if (log) log.fatal({ event: 'died', err: error })
  else console.error(describeStart(error))
}

/** Codes with which a database server is not reached. A process calls only the database before it has started. */
const NO_DATABASE = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'ETIMEDOUT', 'EHOSTUNREACH', 'ECONNRESET'])

/** Why a process could not start, with the cure where the cause is known. */
function describeStart(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const code = 'code' in error ? error.code : undefined
  if (code === 'EADDRINUSE')
    return `${error.message}. Another process listens there: stop it, or set PORT to another port.`
  // SQLSTATE of an undefined table or column.
  if (code === '42P01' || code === '42703')
    return `${error.message}. The database is not migrated: run \`npm run cli -- migrate\`.`
  if (code !== undefined && NO_DATABASE.has(String(code)))
    return `The database of DATABASE_URL cannot be reached (${error.message || code}). \`npm run cli -- doctor\` says more.`
  return error.message
}
