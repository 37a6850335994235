# The image of the service, with no more than it needs: Node.js, the libraries, the sources and their compile cache.
# docs/install.md says how to run it. The files belong to root. The service runs as another user, who can write only
# data/, so the root file system can be mounted read-only.

FROM node:26.10.0-trixie-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --ignore-scripts
COPY LICENSE ./
COPY src src
COPY conformance conformance
COPY page page
# The page for librarians uses the client.
COPY client/src client/src
COPY docs/openapi/openapi.json docs/openapi/
COPY deploy/book-catalogue.1 deploy/
# Node.js keeps its compile cache per user, so the user who runs the service creates it; then all users may read it.
RUN mkdir node_modules/.cache && chown node node_modules/.cache
USER node
RUN node src/compile.js
USER root
RUN chown -R root:root node_modules/.cache && chmod -R a+rX node_modules/.cache
# It has built the page, and nothing needs it any more.
RUN rm -r node_modules/esbuild node_modules/@esbuild node_modules/.bin/esbuild

# The documents as a site. Its generator stays in this stage.
FROM build AS site
COPY site/package.json site/package-lock.json site/
RUN npm ci --prefix site --ignore-scripts
COPY README.md CHANGELOG.md ./
COPY client/README.md client/
COPY deploy/cluster/README.md deploy/cluster/
COPY docs docs
COPY site site
RUN node site/build.ts

FROM node:26.10.0-trixie-slim
LABEL org.opencontainers.image.title="book-catalogue" \
      org.opencontainers.image.description="A book catalogue service: JSON over HTTP, on SQLite or PostgreSQL" \
      org.opencontainers.image.version="1.1.0" \
      org.opencontainers.image.licenses="MIT"
WORKDIR /app
COPY --from=build /app ./
COPY --from=site /app/site/dist site/dist
RUN install -d -o node -g node data
VOLUME /app/data
# For the files of imports: no other folder is writable, and in memory (tmpfs) they would take it.
ENV TMPDIR=/app/data
# The user `node`, as a number: Kubernetes checks by the number that it is not root.
USER 1000:1000
EXPOSE 8080 8082
# It runs inside the container, where the operations listener is on loopback.
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 CMD ["node", "src/main.js", "ready", "--alive"]
# No shell in between, so SIGTERM reaches the service.
ENTRYPOINT ["node", "src/main.js"]
CMD ["serve"]
