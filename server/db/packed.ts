// Many long values as one parameter of a statement.
import { column, sql } from './pool.ts'

/**
 * Values of bytes, end to end in one parameter. An array of bytea would travel as hexadecimal digits, at twice the length, and Postgres
 * would read it digit by digit.
 * @returns `bytes`: the parameter, and `starts` and `lengths`: one number for each value, in the order of the values. In SQL a value is
 *   `substr(bytes, start, length)`.
 */
export function packed(values: readonly Buffer[]) {
  let end = 0
  const places = values.map(({ length }) => {
    const start = end + 1
    end += length
    return { start, length }
  })
  return {
    bytes: sql.fragment`${sql.binary(Buffer.concat(values, end))}::bytea`,
    starts: column(places, 'int4', ({ start }) => start),
    lengths: column(places, 'int4', ({ length }) => length),
  }
}
