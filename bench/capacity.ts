// `node bench/capacity.ts`: the throughput of processes of this release. Measures the CPU of a verification in a real
// installation, simulates it, compares a simulated load with a real one that was not measured before, and then simulates
// larger installations. Exits 1 if simulation and reality differ by more than a fifth. docs/capacity.md has the conclusions
// for an operator.
import { availableParallelism } from 'node:os'
import { CALLERS, type Kind, openCapacityHouse, type Run, USERS } from './capacity-house.ts'
import { type Phase, simulate, type World } from './capacity-simulation.ts'
import { seeded } from './eval/random.ts'
import { openLab } from './lab.ts'
import { NEEDS, readCall } from './program.ts'
import { median } from './rounds.ts'
import { figure, printHeading, printNote, printRows } from './table.ts'

const MOST_APART = 0.2
const { options: values } = await readCall('node bench/capacity.ts', {
  summary: 'measure what a verification costs each process, and simulate what larger houses carry',
  operands: [],
  usage: '[--quick]',
  about:
    'Buys verifications in a house of one web and one worker process, simulates the same house from the CPU that they took,\n' +
    'compares both on a load that was not measured before, and then simulates larger houses. docs/capacity.md says what\n' +
    `follows for an operator.\n\n${NEEDS}`,
  examples: ['node bench/capacity.ts --quick'],
  exitStatus: '0 good, 1 where simulation and reality are more than a fifth apart, 2 wrong usage.',
  options: {
    quick: { type: 'boolean', default: false, help: '2 rounds of 150 verifications of each sort instead of 3 of 300' },
  },
})
const COUNT = values.quick ? 150 : 300
const ROUNDS = values.quick ? 2 : 3
/** Threads of a web process for signatures, and of a worker for pages. */
const WEB_THREADS = 2
const WORKER_THREADS = Math.min(4, Math.max(2, availableParallelism() - 1))
/** The admission's share of the CPU of Postgres for one verification. */
const ADMISSION_SHARE = 0.3

type Costs = Record<Kind, Run['cpu']>

interface House {
  web: number
  webCores: number
  worker: number
  workerCores: number
  postgres: number
}

/** So large that no part is a limit. */
const UNLIMITED: House = { web: 64, webCores: 2, worker: 64, workerCores: 2, postgres: 512 }

await using lab = await openLab({ quick: values.quick, profile: undefined })
await using house = await openCapacityHouse(lab)
await house.run(kindsOf(COUNT, 0.5))
const measured: Record<Kind, Run[]> = { short: [], long: [] }
const mixed: { real: Run; kinds: Kind[] }[] = []
for (let round = 0; round < ROUNDS; round++) {
  measured.short.push(await house.run(kindsOf(COUNT, 0)))
  const kinds = kindsOf(COUNT, 1 / 3)
  mixed.push({ kinds, real: await house.run(kinds) })
  measured.long.push(await house.run(kindsOf(COUNT / 2, 1)))
}
const costs: Costs = { short: meanCpu(measured.short), long: meanCpu(measured.long) }
printHeading('capacity', `CPU of one verification in milliseconds, ${house.concurrency} under way, ${CALLERS} callers`)
printRows([
  ['', ...(['short', 'long'] as const).map((kind) => `page ${(house.bytes[kind] / 1000).toFixed(1)} kB`)],
  ...USERS.map((name): [string, ...string[]] => [`  ${name}`, figure(costs.short[name]), figure(costs.long[name])]),
])

const { web, worker } = house.memory()
printNote(`largest memory: web process ${figure(web)} MB, worker process ${figure(worker)} MB`)

printHeading('capacity', `simulated and real: ${COUNT} verifications bought at once, a third of them of long pages`)
const pairs = mixed.map(({ kinds, real }) => {
  const simulated = rateOf(thisMachine(real.others), kinds, costs)
  return { real: real.rate, simulated, others: real.others }
})
for (const { real, simulated, others } of pairs)
  printRows([
    [
      `  others used ${figure(others)} cores`,
      `real ${figure(real)}/s`,
      `simulated ${figure(simulated)}/s`,
      percent(simulated / real - 1),
    ],
  ])
const apart = median(pairs.map(({ real, simulated }) => simulated / real - 1))
printNote(
  `difference, median: ${percent(apart)}; at most ${percent(MOST_APART)}: ${Math.abs(apart) <= MOST_APART ? 'met' : 'MISSED'}`,
)
if (Math.abs(apart) > MOST_APART) process.exitCode = 1

printHeading(
  'capacity',
  'simulated: verifications per second that one process or database carries, the others without limit',
)
const one = (part: Partial<House>) => {
  const size = { ...UNLIMITED, ...part }
  return [0, 1 / 3, 1].map((share) => `${figure(rateOf(worldOf(size), kindsOf(1000, share), costs))}/s`)
}
printRows([
  ['', 'short pages', 'a third long', 'long pages'],
  ['one web process, 1 core', ...one({ web: 1, webCores: 1 })],
  ['one web process, 2 cores', ...one({ web: 1, webCores: 2 })],
  ['one worker process, 1 core', ...one({ worker: 1, workerCores: 1 })],
  ['one worker process, 2 cores', ...one({ worker: 1, workerCores: 2 })],
  ['Postgres, 2 cores', ...one({ postgres: 2 })],
  ['Postgres, 8 cores', ...one({ postgres: 8 })],
])

/** Everything on the cores of this machine that other programs leave free. */
function thisMachine(others: number): World {
  const cores = Math.max(0.1, availableParallelism() - others)
  return worldWith({ here: cores }, () => 'here', { web: 1, worker: 1, callers: CALLERS })
}

/** Separate hosts. All processes of one kind are one host with the sum of their cores, which is the best case. */
function worldOf({ web, webCores, worker, workerCores, postgres }: House): World {
  const hosts = { outside: 1000, web: web * webCores, worker: worker * workerCores, postgres }
  const hostOf = (user: string) =>
    user.startsWith('API') ? 'web' : user.startsWith('worker') ? 'worker' : user === 'Postgres' ? 'postgres' : 'outside'
  return worldWith(hosts, hostOf, { web, worker, callers: 4096 })
}

function worldWith(
  hosts: World['hosts'],
  hostOf: (user: string) => string,
  { web, worker, callers }: { web: number; worker: number; callers: number },
): World {
  const outside = callers > CALLERS ? 1000 : 1
  const servers: Record<(typeof USERS)[number], number> = {
    'load loop': outside,
    'API loop': web,
    'API threads': web * WEB_THREADS,
    Postgres: 1000,
    'worker loop': worker,
    'worker threads': worker * WORKER_THREADS,
    'page loop': outside,
  }
  return {
    hosts,
    stations: Object.fromEntries(USERS.map((user) => [user, { host: hostOf(user), servers: servers[user] }])),
    places: { callers, worker: worker * house.concurrency },
  }
}

function rateOf(world: World, kinds: readonly Kind[], costs: Costs): number {
  const ended = simulate(
    world,
    kinds.map((kind) => ({ at: 0, phases: phasesOf(costs[kind]) })),
  )
  return (kinds.length * 1000) / Math.max(...ended)
}

/** The work of a verification by part, in the order of docs/architecture.md. */
function phasesOf(cpu: Run['cpu']): Phase[] {
  const visit = (station: (typeof USERS)[number], share = 1) => ({ station, ms: cpu[station] * share })
  return [
    {
      place: 'callers',
      visits: [
        visit('load loop'),
        visit('API loop', 0.5),
        visit('API threads'),
        visit('Postgres', ADMISSION_SHARE),
        visit('API loop', 0.5),
      ],
    },
    {
      place: 'worker',
      visits: [
        visit('worker loop', 0.4),
        visit('page loop'),
        visit('worker threads'),
        visit('worker loop', 0.6),
        visit('Postgres', 1 - ADMISSION_SHARE),
      ],
    },
  ]
}

function kindsOf(count: number, longShare: number): Kind[] {
  const random = seeded(17)
  return Array.from({ length: count }, () => (random(1000) < longShare * 1000 ? 'long' : 'short'))
}

function meanCpu(runs: readonly Run[]): Run['cpu'] {
  const mean = (name: (typeof USERS)[number]) => runs.reduce((sum, { cpu }) => sum + cpu[name], 0) / runs.length
  return Object.fromEntries(USERS.map((name) => [name, mean(name)])) as Run['cpu']
}

function percent(share: number): string {
  return `${share > 0 ? '+' : ''}${(100 * share).toFixed(0)} %`
}
