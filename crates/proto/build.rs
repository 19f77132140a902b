//! Compiles `proto/` without protoc: building needs nothing but Rust and a C compiler.

use std::path::PathBuf;

use prost::Message;

const FILES: [&str; 3] =
    ["tollgate/v1/tollgate.proto", "envoy/service/ratelimit/v3/rls.proto", "grpc/health/v1/health.proto"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let protos = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?).join("proto");
    println!("cargo::rerun-if-changed={}", protos.display());
    let descriptors = protox::compile(FILES.map(|file| protos.join(file)), [&protos])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?).join("descriptors.bin");
    std::fs::write(out, descriptors.encode_to_vec())?;
    tonic_prost_build::configure()
        .build_transport(false)
        .include_file("all.rs")
        .codec_path("crate::Codec")
        .btree_map(".tollgate.v1.CheckRequest.attributes") // a few names: cheaper to sort than to hash
        .bytes(".envoy.service.ratelimit.v3.RateLimitResponse.raw_body")
        .compile_fds(descriptors)?;
    Ok(())
}
