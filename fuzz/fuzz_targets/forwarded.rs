//! X-Forwarded-For: nobody speaks for others but who is trusted.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tollgate_http::fuzzing::forwarded(data));
