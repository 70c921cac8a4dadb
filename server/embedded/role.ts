// The role of the service on the embedded PostgreSQL. It owns its database and all that is in it, and is no superuser: it can
// read no file of the machine, run no program, and change no role.
import { createHash } from 'node:crypto'
import pg from 'pg'

/** Of the role and of its database. */
export const SERVICE = 'countersign'

/** The role's password. The superuser's cannot be computed from it. */
export const servicePassword = (superuserPassword: string): string =>
  createHash('sha256').update(`${SERVICE} ${superuserPassword}`).digest('base64url')

/**
 * Makes the role and its database where they are missing, and gives it what a superuser made in the database before. Needs a
 * superuser's URLs: of the database `postgres`, and of the service's.
 */
export async function ensureServiceRole(adminUrl: string, superuserUrl: string, password: string): Promise<void> {
  await connected(adminUrl, async (client) => {
    const { rows: roles } = await client.query('select rolsuper from pg_roles where rolname = $1', [SERVICE])
    if (roles.length === 0) await client.query(`create role ${SERVICE}`)
    await client.query(`alter role ${SERVICE} login ${WITHOUT_RIGHTS} password ${client.escapeLiteral(password)}`)
    const { rows: databases } = await client.query('select 1 from pg_database where datname = $1', [SERVICE])
    if (databases.length === 0) await client.query(`create database ${SERVICE} owner ${SERVICE}`)
    else await client.query(`alter database ${SERVICE} owner to ${SERVICE}`)
  })
  await connected(superuserUrl, (client) => client.query(TAKE_OVER))
}

async function connected(url: string, work: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    await work(client)
  } finally {
    await client.end()
  }
}

const WITHOUT_RIGHTS = 'nosuperuser nocreatedb nocreaterole noreplication nobypassrls'

/** Sequences of columns and types of tables follow their tables. */
const TAKE_OVER = `
do $$
declare command text;
begin
  for command in
    select format('alter table %s owner to ${SERVICE}', oid::regclass)
      from pg_class
      where relowner <> '${SERVICE}'::regrole and relkind in ('r', 'p', 'v', 'm', 'S') and relnamespace = 'public'::regnamespace
        and not exists (select from pg_depend where objid = pg_class.oid and classid = 'pg_class'::regclass and deptype in ('a', 'i'))
    union all
    select format('alter routine %s owner to ${SERVICE}', oid::regprocedure)
      from pg_proc where proowner <> '${SERVICE}'::regrole and pronamespace = 'public'::regnamespace
    union all
    select format('alter type %s owner to ${SERVICE}', oid::regtype)
      from pg_type
      where typowner <> '${SERVICE}'::regrole and typnamespace = 'public'::regnamespace and typtype in ('e', 'd')
  loop
    execute command;
  end loop;
end $$`
