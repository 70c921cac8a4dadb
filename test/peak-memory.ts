// The most memory that this process has held, for tests of what a reader may take.
import { readFileSync } from 'node:fs'

/** MB. */
export function readPeak(): number {
  try {
    return Number(/VmHWM:\s*(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]) / 1024
  } catch {
    // Another system than Linux. Where there is /proc, this would also count what the parent held when it started this process.
    return process.resourceUsage().maxRSS / 1024
  }
}
