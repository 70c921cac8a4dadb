# One image for web and worker. The command decides: the web process below is the default, compose.yaml has that of the worker, and
# `node server/cli.ts migrate` runs before a release. It has Node and no package of development, and runs as the user `node`.
FROM node:24-alpine AS packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY ops/slim.sh ./ops/
RUN npm ci --omit=dev --omit=optional --no-audit --no-fund && sh ops/slim.sh

FROM node:24-alpine
ENV NODE_ENV=production HOST=0.0.0.0 PORT=8402
WORKDIR /app
COPY --from=packages /app/node_modules ./node_modules
COPY package.json server.json server-check.json LICENSE README.md CHANGELOG.md ./
COPY client ./client
COPY docs ./docs
COPY sql ./sql
COPY workers ./workers
COPY server ./server
USER node
EXPOSE 8402
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/healthz`).then((a) => process.exit(a.ok ? 0 : 1), () => process.exit(1))"]
# `exec` makes Node process 1, so signals arrive.
CMD ["sh", "-c", "exec node --max-semi-space-size=16 --max-old-space-size=${HEAP_MB:-192} server/main.ts"]
