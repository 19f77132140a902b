//! Any bytes are a domain or a report, and a domain matches what the specification says.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tollgate_testkit::fuzzing::envoy_config(data));
