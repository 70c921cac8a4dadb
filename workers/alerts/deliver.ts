// Sends what waits at one webhook, in order.
import type { Payload } from '../../server/db/jobs.ts'
import type { Work } from '../context.ts'

export async function deliverAlerts(_payload: Payload<'deliver_alerts'>, _work: Work): Promise<void> {}
