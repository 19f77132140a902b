//! PROXY protocol: caps, and addresses only of complete headers.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tollgate_net::fuzzing::proxy_header(data));
