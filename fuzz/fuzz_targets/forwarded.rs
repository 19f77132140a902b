//! X-Forwarded-For: only trusted proxies can name another client.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tollgate_http::fuzzing::forwarded(data));
