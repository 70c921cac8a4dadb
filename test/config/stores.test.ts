// The addresses of databases.
import t from 'tap'
import { problemsOf } from '../problems.ts'

t.test('the address of a database behind a pooler is not given alone', async (t) => {
  const url = 'postgres://127.0.0.1/x'
  t.same(problemsOf({ DATABASE_DIRECT_URL: url }), ['DATABASE_DIRECT_URL requires DATABASE_URL.'])
  t.same(problemsOf({ DATABASE_DIRECT_URL: url, DATABASE_URL: url }), [])
})
