//! What GraphQL requests cost, however they travel.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tollgate_testkit::fuzzing::graphql_cost(data));
