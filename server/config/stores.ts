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
    about: 'The same without a pooler, where DATABASE_URL names PgBouncer in transaction mode',
    secret: true,
  },
  DATABASE_CONNECTIONS: {
    schema: whole(2, 100),
    default: '10',
    about: 'Pooled connections of a process; a web process uses 1 more, a worker 7',
  },
  REDIS_URL: {
    schema: z.url({ protocol: /^rediss?$/ }),
    about: 'Redis for shared rate limits and cached pages. Unset: memory and Postgres',
    secret: true,
  },
} as const
