// Gives each piece of code on a page a button that copies it. Without scripts the code is selected by hand.

for (const block of document.querySelectorAll<HTMLElement>('pre[data-copy]')) {
  const caption = block.closest('figure')?.querySelector('figcaption')
  if (!caption) continue
  const button = document.createElement('button')
  button.type = 'button'
  button.className = 'copy'
  button.textContent = 'Copy'
  button.setAttribute('aria-label', `Copy: ${caption.textContent}`)
  const status = document.createElement('span')
  status.setAttribute('role', 'status')
  status.className = 'unseen'
  button.addEventListener('click', async () => {
    const isCopied = await navigator.clipboard.writeText(block.textContent ?? '').then(
      () => true,
      () => false,
    )
    // Refused by the browser: the code is at least selected.
    if (!isCopied) getSelection()?.selectAllChildren(block)
    button.textContent = isCopied ? 'Copied' : 'Selected'
    status.textContent = button.textContent
  })
  caption.append(button, status)
}
