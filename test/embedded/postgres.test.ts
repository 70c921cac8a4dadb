// The embedded PostgreSQL server: clusters, owners that die, and servers that are left behind.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, readdir, readFile, realpath, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import pg from 'pg'
import t from 'tap'
import { checkDataFolder, makeDataFolder } from '../../server/config/data-folder.ts'
import { findOpenDatabase, openEmbeddedPostgres } from '../../server/embedded/postgres.ts'
import { keptSeed } from '../../server/receipts/keys.ts'

const folder = await mkdtemp(join(tmpdir(), 'countersign-embedded-'))
t.teardown(async () => {
  // Links, if PostgreSQL's user cannot reach the folder.
  const clusters = ['durable', 'crashed'].map((name) => realpath(join(folder, name, 'postgres')))
  for (const path of [...(await Promise.all(clusters)), folder]) await rm(path, { recursive: true, force: true })
})
await chmod(folder, 0o711)

const lines: string[] = []
const open = (name: string, durable: boolean, settings: Record<string, string> = {}) =>
  openEmbeddedPostgres({ dataDir: join(folder, name), durable, settings, log: (line) => lines.push(line) })

async function query(url: string, text: string): Promise<string> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    return (await client.query({ text, rowMode: 'array' })).rows[0]?.[0]
  } finally {
    await client.end()
  }
}

/** Another process that opens the durable database and prints its URL; `onSigint` is run with `db` in scope. */
async function spawnOwner(name: string, onSigint = '') {
  const module = new URL('../../server/embedded/postgres.ts', import.meta.url)
  const script = `
    import pg from 'pg'
    import { openEmbeddedPostgres } from ${JSON.stringify(module)}
    const db = await openEmbeddedPostgres({ dataDir: process.argv[1], durable: true, log() {} })
    process.on('SIGINT', async () => { ${onSigint} })
    console.log(db.url)
    // Ends when the test is killed.
    process.stdin.resume().on('end', () => process.exit())`
  const owner = spawn(process.execPath, ['--input-type=module', '-e', script, join(folder, name)], {
    cwd: join(import.meta.dirname, '../..'),
    detached: true,
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const output = createInterface({ input: owner.stdout })[Symbol.asyncIterator]()
  const nextLine = async () => String((await output.next()).value)
  return { owner, nextLine, url: await nextLine() }
}

t.test('a throwaway cluster works and leaves nothing behind', async (t) => {
  const db = await open('throwaway', false, { shared_buffers: '32MB' })
  t.equal(await query(db.url, 'select current_database()'), 'countersign')
  t.equal(await query(db.adminUrl, 'select current_database()'), 'postgres')
  const settings = {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    max_connections: '200',
    server_encoding: 'UTF8',
    lc_collate: 'C',
    TimeZone: 'UTC',
    fsync: 'off',
    full_page_writes: 'off',
    synchronous_commit: 'off',
    shared_buffers: '32MB',
  }
  const collation = `select datcollate from pg_database where datname = 'countersign'`
  for (const [name, value] of Object.entries(settings)) {
    t.equal(await query(db.adminUrl, name === 'lc_collate' ? collation : `show ${name}`), value, name)
  }
  const wrong = new URL(db.url)
  wrong.password = 'wrong'
  await t.rejects(query(wrong.href, 'select 1'), { code: '28P01' }, 'the password counts')
  await db[Symbol.asyncDispose]()
  await t.rejects(query(db.url, 'select 1'), { code: 'ECONNREFUSED' })
  t.same(await readdir(join(folder, 'throwaway')), [])
})

t.test('a durable cluster keeps its data', async (t) => {
  {
    await using db = await open('durable', true)
    t.equal(await query(db.url, 'show fsync'), 'on')
    t.equal(await query(db.url, 'show synchronous_commit'), 'on')
    await query(db.url, 'create table kept as select 42 as answer')
  }
  const { mode } = await stat(join(folder, 'durable/postgres/password'))
  t.equal(mode & 0o777, 0o600)
  await using db = await open('durable', true)
  t.equal(await query(db.url, 'select answer::text from kept'), '42')

  await t.rejects(open('durable', true), {
    message: new RegExp(
      `already running: server process \\d+.*${process.pid}\\. Stop that one, or set DATA_DIR to another folder\\.$`,
    ),
  })
  t.equal(await query(db.url, 'select answer::text from kept'), '42', 'the first one was left alone')
})

t.test('a folder that cannot be made is an error that names DATA_DIR', async (t) => {
  const file = join(folder, 'file')
  await writeFile(file, '')
  const cases = [
    [file, 'EEXIST'],
    [join(file, 'in/it'), 'EEXIST'],
    // Its file system makes no folders. Node tries again without end.
    ...(process.platform === 'linux' ? [['/proc/none', 'ENOENT']] : []),
  ] as const
  for (const [dataDir = '', code] of cases)
    await t.rejects(openEmbeddedPostgres({ dataDir, durable: true, log() {} }), {
      message: new RegExp(`^No folder can be made at ${dataDir} \\(${code}: .*\\)\\. Set DATA_DIR to a folder that`),
    })
  // A folder that is there is none to make.
  const deep = join(folder, 'some/where/deep')
  makeDataFolder(deep)
  makeDataFolder(deep)
  t.ok((await stat(deep)).isDirectory())
})

t.test('a folder that cannot be written is an error that names DATA_DIR, and nothing is started', async (t) => {
  const cases: [dataDir: string, code: string][] = []
  // Its file system makes no folders, not for root either.
  if (process.platform === 'linux') cases.push(['/proc/self', 'ENOENT'])
  if (process.getuid?.() !== 0) {
    const closed = join(folder, 'closed')
    await mkdir(closed, { mode: 0o500 })
    cases.push([closed, 'EACCES: permission denied'])
  }
  for (const [dataDir, code] of cases) {
    const message = new RegExp(
      `^The folder of DATA_DIR, \\S+, cannot be written \\(${code}\\)\\. Let this user write there, or set DATA_DIR to another folder\\.$`,
    )
    await t.rejects(openEmbeddedPostgres({ dataDir, durable: true, log() {} }), { message })
    t.throws(() => keptSeed(dataDir), { message })
  }
  const open = join(folder, 'open')
  await mkdir(open)
  checkDataFolder(open)
  t.same(await readdir(open), [])
})

t.test('the role of the service is no superuser, and owns what a superuser made', async (t) => {
  const superuserOf = ({ adminUrl }: { adminUrl: string }) =>
    Object.assign(new URL(adminUrl), { pathname: '/countersign' }).href
  await using db = await open('durable', true)
  t.equal(new URL(db.url).username, 'countersign')
  const rights = 'rolsuper or rolcreatedb or rolcreaterole or rolreplication or rolbypassrls'
  t.equal(await query(db.url, `select (${rights})::text from pg_roles where rolname = current_user`), 'false')
  for (const denied of [`select pg_read_file('postmaster.pid')`, `copy kept to program 'true'`, 'create role another'])
    await t.rejects(query(db.url, denied), { code: '42501' }, denied)
  t.not(new URL(db.url).password, new URL(db.adminUrl).password)
  t.notOk(await query(db.url, 'select 1 from pg_authid limit 1').catch(() => null), 'no digest of a password')

  await query(superuserOf(db), 'create type mood as enum ($$glad$$)')
  await query(superuserOf(db), 'create table older (id integer generated always as identity primary key, mood mood)')
  await query(superuserOf(db), 'create function one() returns integer language sql return 1')
  await query(superuserOf(db), 'create view both_of as select * from older')
  await db[Symbol.asyncDispose]()
  await using again = await open('durable', true)
  await query(again.url, `insert into older (mood) values ('glad')`)
  await query(again.url, 'alter table older add column note text')
  await query(again.url, 'drop view both_of')
  await query(again.url, 'drop function one()')
  await query(again.url, 'alter type mood add value $$sad$$')
  await query(again.url, 'drop table older')
  await query(again.url, 'drop type mood')
})

t.test('other processes find an open database', async (t) => {
  const dataDir = join(folder, 'durable')
  t.equal(await findOpenDatabase(dataDir), undefined)
  {
    await using db = await open('durable', true)
    t.equal(await findOpenDatabase(dataDir), db.url)
  }
  t.equal(await findOpenDatabase(dataDir), undefined)
  t.equal(await findOpenDatabase(join(folder, 'none')), undefined)
})

t.test('two starts at once: one gets the database, the other an error that says why', async (t) => {
  const results = await Promise.allSettled([open('race', false), open('race', false)])
  const opened = results.filter((result) => result.status === 'fulfilled')
  const failed = results.filter((result) => result.status === 'rejected')
  t.equal(opened.length, 1)
  t.match(failed[0]?.reason, { message: /already running/ })
  t.equal(await query(opened[0]?.value.url ?? '', 'show fsync'), 'off')
  await opened[0]?.value[Symbol.asyncDispose]()
  t.same(await readdir(join(folder, 'race')), [])
})

t.test('the server ends when its owner is killed', async (t) => {
  const { owner, url } = await spawnOwner('durable')
  const witness = new pg.Client(url)
  await witness.connect()
  // The server reports its end to its clients and closes their connections first.
  const { promise: farewell, resolve } = Promise.withResolvers<unknown>()
  witness.on('error', resolve)
  owner.kill('SIGKILL')
  t.match(await farewell, { code: '57P01' })
  await witness.end()
})

t.test('a start right after the owner was killed works, with its data', async (t) => {
  const { owner } = await spawnOwner('durable')
  owner.kill('SIGKILL')
  await once(owner, 'exit')
  await using db = await open('durable', true)
  t.equal(await query(db.url, 'select answer::text from kept'), '42')
})

t.test('a signal to the process group of its owner does not reach the server', async (t) => {
  const { owner, nextLine, url } = await spawnOwner(
    'durable',
    `const client = new pg.Client(db.url)
     await client.connect()
     console.log((await client.query('select answer from kept')).rows[0].answer)
     await client.end()
     await db[Symbol.asyncDispose]()
     process.exit()`,
  )
  process.kill(-(owner.pid as number), 'SIGINT')
  t.equal(await nextLine(), '42')
  await once(owner, 'exit')
  await t.rejects(query(url, 'select 1'), { code: 'ECONNREFUSED' })
})

t.test('leftovers of a crash do no harm', async (t) => {
  await mkdir(join(folder, 'crashed/postgres.draft-999999999-00/data'), { recursive: true })
  await using other = await open('crashed', true)
  t.same(await readdir(join(folder, 'crashed')), ['postgres'], 'half a cluster is removed')

  // The lock names a living process of PostgreSQL's user that does not use this folder.
  const foreign = await query(other.adminUrl, `select pg_read_file('postmaster.pid')`)
  const lock = join(folder, 'durable/postgres/data/postmaster.pid')
  await writeFile(lock, foreign)
  await using db = await open('durable', true)
  t.equal(await query(db.url, 'select answer::text from kept'), '42')
  t.not(Number.parseInt(await readFile(lock, 'utf8'), 10), Number.parseInt(foreign, 10))
})

t.test('a server that ends by itself is reported', async (t) => {
  const reported = Promise.withResolvers<string>()
  const dataDir = join(folder, 'lost')
  await using db = await openEmbeddedPostgres({
    dataDir,
    durable: false,
    log: (line) => line.includes('ended by itself') && reported.resolve(line),
  })
  const pid = Number.parseInt(await query(db.adminUrl, `select pg_read_file('postmaster.pid')`), 10)
  process.kill(pid, 'SIGQUIT')
  t.ok(await reported.promise)
})
