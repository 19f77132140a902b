//! Forwarded: a client cannot swallow the element that its proxy appends.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tollgate_identity::fuzzing::forwarded_field(data));
