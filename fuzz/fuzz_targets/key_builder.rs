//! Buckets are equal exactly when all key parts are.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tollgate_testkit::fuzzing::key_builder(data));
