# Ambit's image for people with Docker; `npm run image` builds the same contents without it.
FROM node:26-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY tsconfig.json tsconfig.build.json ./
COPY src src
RUN npx tsc -p tsconfig.build.json --outDir dist && mkdir -p dist/src/bridge && cp src/bridge/mcp-bridge.wasm dist/src/bridge/ && npm prune --omit=dev
# The base image brings Node; binaryen is for optimising, which we don't.
RUN rm -rf node_modules/node-linux-* node_modules/binaryen

FROM node:26-bookworm-slim
COPY --from=build /app/package.json /app/
COPY --from=build /app/node_modules /app/node_modules
COPY --from=build /app/dist /app/dist
ENV NODE_ENV=production
WORKDIR /app
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/node", "/app/dist/src/cli/main.js"]
