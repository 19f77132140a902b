//! Calls of language models: requests, streams of events and bodies, cut anywhere.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tollgate_testkit::fuzzing::sse_usage(data));
