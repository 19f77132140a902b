//! Durations, instants, numbers: parsing and printing are inverse.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tollgate_testkit::fuzzing::durations(data));
