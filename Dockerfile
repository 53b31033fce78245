# One binary on a slim system, run by a user without rights. Build: docker build -t reprieve .
FROM rust:1-slim-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN cargo build --release --locked --bin reprieve

FROM debian:bookworm-slim
# Providers' certificates are checked against the system's; schedules' time zones are its, too.
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates tzdata && rm -rf /var/lib/apt/lists/*
RUN useradd --system --uid 10001 --home-dir /var/lib/reprieve --create-home reprieve
COPY --from=build /src/target/release/reprieve /usr/local/bin/reprieve
USER reprieve
WORKDIR /var/lib/reprieve
# SIGTERM drains: give it as long as worker.drain says (docker stop --time).
STOPSIGNAL SIGTERM
ENTRYPOINT ["reprieve"]
CMD ["serve"]
