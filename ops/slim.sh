#!/bin/sh
# Deletes from node_modules what nothing reads at run time: types, source maps and texts, which are half of what the packages bring.
# Licences stay. Run it in the folder of package.json, after `npm ci --omit=dev --omit=optional`.
set -eu
find node_modules -type f \
  \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' -o -iname '*.md' \) ! -iname 'licen[cs]e*' -delete
