//! Requests over several limits at once, all or nothing, against the reference.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tollgate_testkit::fuzzing::requests_together(data));
