// Variables of the database and of Redis.
import { z } from 'zod'

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
    schema: z.coerce.number().int().min(2).max(100),
    default: '10',
    about:
      'Most connections of the pool of one process. Beside them a web process has 1 and a worker process 7 of its own',
  },
  REDIS_URL: {
    schema: z.url({ protocol: /^rediss?$/ }),
    about: 'Redis for shared rate limits and cached observations; unset: process memory and Postgres serve',
    secret: true,
  },
} as const
