// Keeps the operator's page up to date: at each event of the service it fetches the page again and exchanges the parts that are
// marked `data-live`. Nothing becomes markup here: the browser's own parser reads the page, without running anything in it.

const parts = () => [...document.querySelectorAll<HTMLElement>('[data-live]')]
const source = document.querySelector<HTMLElement>('[data-events]')?.dataset.events

if (source && parts().length > 0) {
  const events = new EventSource(source)
  events.addEventListener('changed', refresh)
  // After the end of the session the service refuses the connection; the browser gives up, and the page shows since when it
  // is not updated.
  events.addEventListener('error', () =>
    showStatus(events.readyState === EventSource.CLOSED ? 'Not live: load the page again.' : 'Reconnecting.'),
  )
  events.addEventListener('open', () => showStatus('Live.'))
}

function showStatus(words: string) {
  const status = document.getElementById('live-status')
  if (status) status.textContent = words
}

let isBusy = false
let isStale = false

/** At most one fetch at a time; what changes meanwhile is fetched after it. */
function refresh() {
  if (isBusy) {
    isStale = true
    return
  }
  isBusy = true
  const request = new XMLHttpRequest()
  request.responseType = 'document'
  request.addEventListener('loadend', () => {
    isBusy = false
    if (request.status === 200 && request.responseXML) exchange(request.responseXML)
    if (isStale) {
      isStale = false
      refresh()
    }
  })
  request.open('GET', location.href)
  request.send()
}

/** A part that has the focus, or an open section, is not replaced until that ends. */
function exchange(fresh: Document) {
  for (const part of parts()) {
    const next = fresh.querySelector<HTMLElement>(`[data-live="${CSS.escape(part.dataset.live ?? '')}"]`)
    if (next && !part.contains(document.activeElement) && !part.querySelector('details[open]')) part.replaceWith(next)
  }
}
