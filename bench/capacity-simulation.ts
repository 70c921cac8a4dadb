// A discrete-event simulation of the service: work goes through phases, each phase needs a place, and each of its visits needs a server
// of a station for some milliseconds of CPU. Stations of one host share its cores evenly.

export interface World {
  /** Cores of each host; a part of a core is a number too. */
  hosts: Readonly<Record<string, number>>
  /** An event loop is a station with one server; a pool of threads has several. */
  stations: Readonly<Record<string, { host: string; servers: number }>>
  /** How many may be in a phase at once: connections of callers, verifications under way in a worker. */
  places: Readonly<Record<string, number>>
}

export interface Visit {
  /** Null for time that passes without CPU: an origin that answers late, a disk. */
  station: string | null
  ms: number
}

export interface Phase {
  place: string
  visits: readonly Visit[]
}

export interface Work {
  /** Milliseconds from the beginning. */
  at: number
  phases: readonly Phase[]
}

interface Job {
  index: number
  work: Work
  phase: number
  visit: number
  /** Milliseconds of the visit that are left. */
  left: number
}

/** When each of them ended, in milliseconds from the beginning, in the order given. Throws for a station or place without name. */
export function simulate(world: World, works: readonly Work[]): number[] {
  const ended = works.map(() => Number.NaN)
  const free = new Map(Object.entries(world.places))
  const atPlace = new Map<string, Job[]>(Object.keys(world.places).map((name) => [name, []]))
  const idle = new Map(Object.entries(world.stations).map(([name, { servers }]) => [name, servers]))
  const atStation = new Map<string, Job[]>(Object.keys(world.stations).map((name) => [name, []]))
  const running = new Map<string, Set<Job>>(Object.keys(world.hosts).map((name) => [name, new Set()]))
  const waiting: { until: number; go: () => void }[] = []
  let now = 0

  function sleep(until: number, go: () => void) {
    let at = waiting.length
    while (at > 0 && waiting[at - 1]!.until < until) at--
    waiting.splice(at, 0, { until, go })
  }
  const hostOf = (station: string) => running.get(world.stations[station]!.host)!
  const phaseOf = (job: Job) => job.work.phases[job.phase]
  const visitOf = (job: Job) => phaseOf(job)?.visits[job.visit]

  function enterPhase(job: Job) {
    const phase = phaseOf(job)
    if (!phase) {
      ended[job.index] = now
      return
    }
    const places = free.get(phase.place)
    if (places === undefined) throw new Error(`no place is called ${phase.place}`)
    if (places === 0) atPlace.get(phase.place)!.push(job)
    else {
      free.set(phase.place, places - 1)
      job.visit = 0
      enterVisit(job)
    }
  }
  function leavePhase(job: Job) {
    const { place } = phaseOf(job)!
    free.set(place, free.get(place)! + 1)
    const next = atPlace.get(place)!.shift()
    job.phase++
    enterPhase(job)
    if (next) enterPhase(next)
  }
  function enterVisit(job: Job) {
    const visit = visitOf(job)
    if (!visit) return leavePhase(job)
    if (visit.station === null) return sleep(now + visit.ms, () => leaveVisit(job))
    const servers = idle.get(visit.station)
    if (servers === undefined) throw new Error(`no station is called ${visit.station}`)
    job.left = visit.ms
    if (servers === 0) atStation.get(visit.station)!.push(job)
    else {
      idle.set(visit.station, servers - 1)
      hostOf(visit.station).add(job)
    }
  }
  function leaveVisit(job: Job) {
    const { station } = visitOf(job)!
    if (station !== null) {
      hostOf(station).delete(job)
      const next = atStation.get(station)!.shift()
      if (next) hostOf(station).add(next)
      else idle.set(station, idle.get(station)! + 1)
    }
    job.visit++
    enterVisit(job)
  }

  for (const [index, work] of works.entries())
    sleep(work.at, () => enterPhase({ index, work, phase: 0, visit: 0, left: 0 }))
  for (;;) {
    // The next event: the end of a wait, or of a visit.
    let until = waiting.at(-1)?.until ?? Number.POSITIVE_INFINITY
    let done: Job | undefined
    for (const [host, jobs] of running) {
      const speed = Math.min(1, world.hosts[host]! / jobs.size)
      for (const job of jobs)
        if (now + job.left / speed < until) {
          until = now + job.left / speed
          done = job
        }
    }
    if (until === Number.POSITIVE_INFINITY) return ended
    for (const [host, jobs] of running) {
      const had = (until - now) * Math.min(1, world.hosts[host]! / jobs.size)
      for (const job of jobs) job.left = Math.max(0, job.left - had)
    }
    now = until
    if (done) leaveVisit(done)
    else waiting.pop()!.go()
  }
}
