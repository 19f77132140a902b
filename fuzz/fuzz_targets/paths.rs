//! One spelling per path, and patterns that match by definition.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tollgate_testkit::fuzzing::paths(data));
