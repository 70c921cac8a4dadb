// The variable of the heap. The start commands of package.json, Dockerfile and compose.yaml read it, because a heap is as large as its
// process was told at its start.
import { z } from 'zod'

export const heapVariables = {
  HEAP_MB: {
    schema: z.coerce.number().int().min(64).max(65_536),
    default: '192',
    about:
      'Megabytes that the start commands of web and worker allow the old generation of the heap. As much again, and 128, lie beside it',
  },
} as const
