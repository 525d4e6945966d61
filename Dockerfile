# An image with a static binary only. It runs as an unprivileged user and writes only to the given paths:
#   docker run --rm --read-only -v "$PWD:/work" -w /work IMAGE run --target all=http://host:4010
FROM rust:1-slim AS build
RUN apt-get update && apt-get install --no-install-recommends --yes musl-tools && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN target="$(uname -m)-unknown-linux-musl" \
 && rustup target add "$target" \
 && cargo build --profile dist --locked --target "$target" \
 && cp "target/$target/dist/conformant" /conformant

FROM scratch
COPY --from=build /conformant /conformant
USER 65534:65534
WORKDIR /work
ENTRYPOINT ["/conformant"]
CMD ["run"]
