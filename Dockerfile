# The `pteros` command in an image of its own.
#
#   docker build -t pteros .
#   docker run --rm --network host --ipc host pteros topic list -t
#
# RTPS needs the host's network: multicast does not leave a bridge network. Without it,
# ROS_STATIC_PEERS names the peers.

FROM rust:1.95-slim-bookworm AS build
# The image's compiler by the name that it is installed under, not the channel of
# rust-toolchain.toml. rustup downloads a toolchain that has another name.
ENV RUSTUP_TOOLCHAIN=$RUST_VERSION
# The cryptography library is C.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends cmake g++ make \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /pteros
COPY . .
RUN cargo build --locked --profile dist --package pteros-cli --features full

FROM debian:bookworm-slim
COPY --from=build /pteros/target/dist/pteros /usr/local/bin/pteros
# SIGINT and SIGTERM end the command as in a terminal, so `docker stop` does not wait.
ENTRYPOINT ["pteros"]
CMD ["--help"]
