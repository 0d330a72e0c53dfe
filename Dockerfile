# The image: one static binary, the roots of trust, one folder to write to.
#
#   docker build --build-arg GO_IMAGE=golang@sha256:... --build-arg VERSION=1.2.3 .
#
# GO_IMAGE is any image that holds the Go that go.mod names, a shell, and the
# roots of trust; name it by digest, and two builds give the same bytes where
# the builder is told one time for all files (buildah's --timestamp, BuildKit's
# SOURCE_DATE_EPOCH with rewrite-timestamp). It runs on the builder's own
# platform and cross-compiles: --platform linux/amd64,linux/arm64.

ARG GO_IMAGE=golang:1.26
FROM --platform=$BUILDPLATFORM ${GO_IMAGE} AS build
ARG TARGETOS TARGETARCH
ARG VERSION
# Where modules come from; without it, what Go does by itself.
ARG GOPROXY
WORKDIR /src
COPY . .
# grpcnotrace leaves out a debugging page of the OpenTelemetry exporter's, for
# which the linker would have to keep every method of everything: 10 MB. The other
# tag leaves out HTTP/2, which oncegate serves nobody; its own requests (to
# collectors and witnesses) go by HTTP/1.1, and gRPC has its own.
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -tags grpcnotrace,nethttpomithttp2 -trimpath -buildvcs=false \
		-ldflags "-s -w -X main.release=$VERSION" -o /out/oncegate ./cmd/oncegate && \
	mkdir -m 700 /out/state

FROM scratch
ARG VERSION
ARG REVISION
LABEL org.opencontainers.image.title="oncegate" \
	org.opencontainers.image.description="Makes webhooks take effect once, in front of an app that you don't change" \
	org.opencontainers.image.licenses="Apache-2.0" \
	org.opencontainers.image.version="$VERSION" \
	org.opencontainers.image.revision="$REVISION"
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/oncegate /usr/bin/oncegate
COPY --from=build --chown=65532:65532 /out/state /var/lib/oncegate
# 127.0.0.1 would be out of reach for everybody else. The operators' listener
# stays there. There is no /tmp: SQLite, which sorts what is large in a file, does
# it in the one folder that can be written to.
ENV PATH=/usr/bin \
	ONCEGATE_LISTEN=:8080 \
	ONCEGATE_HEALTH=:9180 \
	STATE_DIRECTORY=/var/lib/oncegate \
	SQLITE_TMPDIR=/var/lib/oncegate
USER 65532:65532
VOLUME /var/lib/oncegate
EXPOSE 8080 9180
# Kubernetes has probes of its own and does not look at this.
HEALTHCHECK --interval=10s --timeout=6s --start-period=30s CMD ["/usr/bin/oncegate", "healthcheck"]
ENTRYPOINT ["/usr/bin/oncegate"]
CMD ["serve", "--config", "/etc/oncegate/oncegate.yaml"]
