//! Calendars of quotas: texts, and the periods of an instant.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tollgate_testkit::fuzzing::calendars(data));
