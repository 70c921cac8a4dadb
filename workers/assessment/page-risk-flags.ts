// The flags that page-quality.ts raises, in words.

/** What a reader should know about the page as a whole. Flag → meaning; flags are never renamed. */
export const pageFlagMeanings = {
  challenge_suspected: 'The page has words of a check for robots; what it holds otherwise was assessed.',
  login_wall_suspected: 'The page asks to log in or subscribe; it may not show all of its text.',
  soft_404_suspected: 'The page has words of a missing page; what it holds otherwise was assessed.',
  script_shell_suspected:
    'The page shows little text for its size, or asks for JavaScript; it may be filled in by scripts.',
} as const satisfies Record<`${Lowercase<string>}`, string>
export type PageFlag = keyof typeof pageFlagMeanings
