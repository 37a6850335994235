# The service as an image, the smallest that it needs: Node.js, the libraries, the sources and their translation.
# docs/operations.md has how to run it. It belongs to root and runs as another user, who may write nothing but
# data/, so that the rest of it can be mounted read-only.

FROM node:26.10.0-trixie-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --ignore-scripts
COPY LICENSE ./
COPY src src
# Node.js uses a translation only for the user that made it, so that user makes it; then it is everybody's to read.
RUN mkdir node_modules/.cache && chown node node_modules/.cache
USER node
RUN node src/compile.js
USER root
RUN chown -R root:root node_modules/.cache && chmod -R a+rX node_modules/.cache

FROM node:26.10.0-trixie-slim
LABEL org.opencontainers.image.title="book-catalogue" \
      org.opencontainers.image.description="A book catalogue service: JSON over HTTP, on SQLite or PostgreSQL" \
      org.opencontainers.image.version="1.0.0" \
      org.opencontainers.image.licenses="MIT"
WORKDIR /app
COPY --from=build /app ./
RUN install -d -o node -g node data
VOLUME /app/data
# The user `node`, by number: Kubernetes knows by it that this is not root.
USER 1000:1000
EXPOSE 8080
# Asked inside, where the operations listener is on loopback.
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 CMD ["node", "src/main.js", "ready", "--alive"]
# Without a shell between, SIGTERM reaches the service.
ENTRYPOINT ["node", "src/main.js"]
CMD ["serve"]
