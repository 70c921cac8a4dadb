// Gives /verify something to check, as a reader does: once something was checked, the form is folded below the answer.
import type { Page } from 'playwright-core'

export async function give(page: Page, text: string) {
  const again = page.getByText('Check another file')
  if ((await again.isVisible()) && !(await page.isVisible('#text'))) await again.click()
  await page.fill('#text', text)
  await page.getByRole('button', { name: 'Verify it' }).click()
}
