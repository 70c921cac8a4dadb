// Variables of the database and of Redis.
import { z } from 'zod'
import { whole } from './numbers.ts'

export const storeVariables = {
  DATABASE_URL: {
    schema: z.url({ protocol: /^postgres(ql)?$/ }),
    about: 'Postgres 14 or newer; unset: embedded Postgres (npm start and demo only)',
    secret: true,
  },
  DATABASE_DIRECT_URL: {
    schema: z.url({ protocol: /^postgres(ql)?$/ }),
    about:
      'The same database past a pooler, where DATABASE_URL names PgBouncer in transaction mode: for listening, locks of a session and migrations',
    secret: true,
  },
  DATABASE_CONNECTIONS: {
    schema: whole(2, 100),
    default: '10',
    about: 'Most connections in the pool of one process. In addition a web process uses 1 and a worker process 7',
  },
  REDIS_URL: {
    schema: z.url({ protocol: /^rediss?$/ }),
    about: 'Redis for shared rate limits and cached observations; unset: process memory and Postgres are used',
    secret: true,
  },
} as const
