// The schema as text, for sql/schema.sql: the result of all migrations, so that a change of the schema shows as a diff. It is
// read from the catalogue, because the embedded server has no pg_dump.
import { z } from 'zod'
import { type Database, sql } from './pool.ts'

const HEADER = '-- Made by `npm run --silent cli -- schema > sql/schema.sql`. A test holds it to the migrations.\n'

/** Tables with columns and constraints, indexes, triggers and functions of the public schema, in a fixed order. */
export async function describeSchema(db: Database): Promise<string> {
  const sections = [await describeTables(db), await describeIndexes(db), await describeCode(db)]
  return `${HEADER}\n${sections.filter(Boolean).join('\n\n')}\n`
}

const line = z.object({ text: z.string() })

async function describeTables(db: Database): Promise<string> {
  const tables = await db.any(sql.type(
    z.object({ name: z.string(), kind: z.string(), body: z.string(), options: z.string() }),
  )`
    select c.relname name, case c.relpersistence when 'u' then 'unlogged table' else 'table' end kind, coalesce(' with (' || array_to_string(c.reloptions, ', ') || ')', '') options,
      (select string_agg('  ' || item, E',\n' order by kind, n, item) from (
         select 1 kind, a.attnum n, a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
           || case a.attidentity when 'a' then ' generated always as identity' else '' end
           || case when a.attnotnull then ' not null' else '' end
           || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '')
           || case when a.attstorage <> t.typstorage then ' storage ' || case a.attstorage when 'e' then 'external'
                when 'm' then 'main' when 'p' then 'plain' else 'extended' end else '' end item
         from pg_attribute a join pg_type t on t.oid = a.atttypid
         left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
         where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
         union all
         select 2, 0, 'constraint ' || conname || ' ' || pg_get_constraintdef(oid)
         from pg_constraint where conrelid = c.oid and contype <> 'n') items) body
    from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' order by c.relname`)
  return tables.map(({ name, kind, body, options }) => `create ${kind} ${name} (\n${body}\n)${options};`).join('\n\n')
}

async function describeIndexes(db: Database): Promise<string> {
  const indexes = await db.any(sql.type(line)`
    select pg_get_indexdef(i.indexrelid) || ';' text
    from pg_index i join pg_class c on c.oid = i.indexrelid
    where c.relnamespace = 'public'::regnamespace
      and not exists (select from pg_constraint where conindid = i.indexrelid)
    order by c.relname`)
  return indexes.map(({ text }) => text).join('\n')
}

async function describeCode(db: Database): Promise<string> {
  const code = await db.any(sql.type(line)`
    select text from (
      select 1 kind, p.proname name, trim(trailing E'\n' from pg_get_functiondef(p.oid)) || ';' text
      from pg_proc p where p.pronamespace = 'public'::regnamespace
      union all
      select 2, t.tgname, pg_get_triggerdef(t.oid) || ';'
      from pg_trigger t join pg_class c on c.oid = t.tgrelid
      where c.relnamespace = 'public'::regnamespace and not t.tgisinternal) code
    order by kind, name`)
  return code.map(({ text }) => text).join('\n')
}
