# docs/container.md says how to run it. test/package/image.test.ts performs these steps without Docker.
ARG NODE_VERSION=24

FROM node:${NODE_VERSION}-bookworm AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY tsconfig.json ./
COPY .ci/build.ts .ci/plain-types.ts .ci/tsconfig.json .ci/
COPY src src
RUN npm run build

# This base has g++, make and Python: better-sqlite3 is compiled where no prebuilt binary can be fetched.
FROM node:${NODE_VERSION}-bookworm AS packages
# Optional packages to install too, as npm names them, separated by blanks.
ARG PACKAGES=""
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN if [ -z "$PACKAGES" ]; then npm ci --omit=dev --omit=optional; \
    else npm pkg delete devDependencies peerDependencies peerDependenciesMeta && npm install --no-save $PACKAGES; fi
# What compiling left behind.
RUN rm -rf node_modules/better-sqlite3/deps \
    && find node_modules/better-sqlite3/build -type f -not -name better_sqlite3.node -delete

FROM node:${NODE_VERSION}-bookworm-slim
LABEL org.opencontainers.image.title="memprefix" \
      org.opencontainers.image.description="Cache-stable prompts from agent memory: middleware between Mem0's search and the LLM inference engine" \
      org.opencontainers.image.licenses="Apache-2.0"
WORKDIR /app
COPY --from=packages /app/node_modules node_modules
COPY package.json LICENSE ./
COPY examples examples
COPY migrations migrations
COPY --from=build /build/dist dist
RUN ln -s /app/dist/cli/main.js /usr/local/bin/memprefix && install -d -o 1000 -g 1000 /data
# Beyond the loopback memprefix listens only with an API key. Docker kills 10 s after SIGTERM: memprefix is done by then.
# What SQLite sets aside may be as large as the database: beside it, not in a /tmp that is memory.
ENV NODE_ENV=production \
    MEMPREFIX_DATA_DIR=/data \
    MEMPREFIX_HOST=0.0.0.0 \
    MEMPREFIX_PORT=4600 \
    SQLITE_TMPDIR=/data
USER 1000:1000
VOLUME /data
EXPOSE 4600
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 \
    CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.MEMPREFIX_PORT}/healthz`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "--max-semi-space-size=64", "/app/dist/cli/main.js"]
CMD ["serve"]
