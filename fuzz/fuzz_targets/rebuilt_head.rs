//! Heads that the gateway rebuilds: the strict parser reads them as the one request that was decided about.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tollgate_gateway::fuzzing::rebuilt_head(data));
