# An image with a static binary and the root certificates. It runs as an unprivileged user, who may write to /work only:
#   docker run --rm --read-only -v "$PWD:/work" --user "$(id -u)" IMAGE run --target all=http://host:4010
FROM rust:1-slim AS build
RUN apt-get update && apt-get install --no-install-recommends --yes ca-certificates musl-tools && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN target="$(uname -m)-unknown-linux-musl" \
 && rustup target add "$target" \
 && cargo build --profile dist --locked --target "$target" \
 && cp "target/$target/dist/conformant" /conformant \
 && mkdir /reports

FROM scratch
COPY --from=build /conformant /conformant
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build --chown=65534:65534 /reports /work
USER 65534:65534
WORKDIR /work
ENTRYPOINT ["/conformant"]
CMD ["run", "--reference"]
