//! Envoy's rate limit service: any message is refused or answered.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tollgate_service::fuzzing::rls_request(data));
