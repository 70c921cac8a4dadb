// What a watchdog knows of its job, in a sentence for each state.
import type { Watchdog } from '../../operations/watchdog.ts'
import { inFigures } from '../parts.ts'
import { span } from './account-parts.ts'

/** What it knows, and what happens next. The times are those of the server. */
export function stateInWords(watchdog: Watchdog): string {
  const { state, beats, last_heartbeat_at, due_at, down_since, paused_until, recent_beats, server_now } = watchdog
  const ago = (iso: string) => span(Math.max(0, Date.parse(server_now) - Date.parse(iso)) / 1000)
  const until = (iso: string) => span(Math.max(0, Date.parse(iso) - Date.parse(server_now)) / 1000)
  const last = last_heartbeat_at && `the last heartbeat came ${ago(last_heartbeat_at)} ago, ${inFigures(beats)} in all`
  switch (state) {
    case 'new':
      return due_at ? `No heartbeat yet; the first is due within ${until(due_at)}.` : 'No heartbeat yet.'
    case 'up':
      return capital(`${last}${due_at ? `; the next is due within ${until(due_at)}` : ''}.`)
    case 'late':
      return `A heartbeat was due ${due_at ? `${ago(due_at)} ago` : 'before now'}; ${last ?? 'none has come yet'}.`
    case 'down': {
      const reason =
        recent_beats.at(-1) === 'failed'
          ? `the job itself said ${last_heartbeat_at ? `${ago(last_heartbeat_at)} ago ` : ''}that it failed`
          : last
            ? `no heartbeat came in time, and ${last}`
            : 'no heartbeat has ever come'
      return `Down${down_since ? ` for ${ago(down_since)}` : ''}: ${reason}. The next heartbeat that says all is well ends it.`
    }
    case 'paused':
      return `Paused${paused_until ? ` for another ${until(paused_until)}` : ''}: silence raises no alert; ${last ?? 'no heartbeat has come yet'}.`
  }
}

const capital = (text: string) => text.slice(0, 1).toUpperCase() + text.slice(1)
