//! Addresses and networks against the standard library.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tollgate_testkit::fuzzing::addresses(data));
